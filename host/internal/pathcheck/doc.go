// Package pathcheck owns the question whether others could replace a file or a
// directory that skep trusts: a module, compiled code, the store; and how a file that
// an operator names is opened: a regular one only. It must not know what lies in them.
//
// The rule is that of ssh for its keys, loosened where it would refuse what is
// sane. Every directory on the way from the root, through all symbolic links:
//
//   - must not be writable for all, nor for a group; a group that has the
//     number of the directory's owner or of this process's user is a private one,
//     and group 0 is as good as root. A sticky directory such as /tmp may be
//     writable, because no user can replace another's entries there.
//   - must belong to root or to this process's user. When that is root, the
//     directories further up may be anybody's (a checkout that is mounted into a
//     container), though not what lies in a sticky one.
//
// A module's file obeys both, and what is read is what was judged, up to a size. A directory
// that skep keeps for itself must not be writable for any group, nor sticky. On
// systems without Unix permissions nothing is refused.
package pathcheck

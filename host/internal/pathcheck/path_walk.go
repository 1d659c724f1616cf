package pathcheck

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// user is whom a path must be safe for: the number of a process's user.
type user int

// maxLinks is how many symbolic links one path may go through.
const maxLinks = 40

// place is a directory or file on the way.
type place struct {
	path   string
	mode   fs.FileMode
	owner  int
	group  int
	sticky bool // writable, but nobody replaces another's entries
	within bool // it lies in a sticky place
	own    bool // nobody else has a reason to write to it
}

// pathWalk is a way from the root to a file or directory. It is taken from above:
// what has been judged good no other user can change afterwards.
type pathWalk struct {
	user    user
	places  []place
	links   []place // those in sticky places
	file    string  // what the path ends at, if that is no directory
	kind    fs.FileMode
	missing bool // it does not exist
}

// walk follows a path and notes what it leads through.
func (u user) walk(path string) (*pathWalk, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	root := filepath.VolumeName(path) + string(filepath.Separator)
	w := &pathWalk{user: u}
	if err := w.addRoot(root); err != nil {
		return nil, err
	}
	at, links := root, 0
	for left := parts(path[len(root):]); len(left) > 0; {
		name := left[0]
		left = left[1:]
		if name == ".." {
			at = filepath.Dir(at)
			w.addAgain(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			w.missing = true
			return w, nil
		case err != nil:
			return nil, err
		case info.Mode()&fs.ModeSymlink != 0:
			if links++; links > maxLinks {
				return nil, &UnfitError{Path: path, Reason: fmt.Sprintf("leads through more than %d symbolic links", maxLinks)}
			}
			if at, left, err = w.followLink(at, next, info, left); err != nil {
				return nil, err
			}
		case info.IsDir():
			at = next
			w.add(next, info)
		case len(left) > 0:
			return nil, &UnfitError{Path: next, Reason: "is not a directory"}
		default:
			w.file, w.kind = next, info.Mode()
		}
	}
	return w, nil
}

// followLink goes through a symbolic link: to the root if it is absolute.
func (w *pathWalk) followLink(at, link string, info fs.FileInfo, left []string) (string, []string, error) {
	if w.last().sticky {
		w.links = append(w.links, w.place(link, info))
	}
	target, err := os.Readlink(link)
	if err != nil {
		return "", nil, err
	}
	if filepath.IsAbs(target) {
		at = filepath.VolumeName(target) + string(filepath.Separator)
		target = target[len(at):]
		w.addAgain(at)
	}
	return at, append(parts(target), left...), nil
}

// parts splits a path; of ".." each stays, because it may follow a link.
func parts(path string) []string {
	return slices.DeleteFunc(strings.Split(path, string(filepath.Separator)), func(s string) bool { return s == "" || s == "." })
}

func (w *pathWalk) addRoot(root string) error {
	info, err := lstat(root)
	if err != nil {
		return err
	}
	w.add(root, info)
	return nil
}

// place describes what lies at a path below the last place.
func (w *pathWalk) place(path string, info fs.FileInfo) place {
	p := place{path: path, mode: info.Mode(), sticky: info.IsDir() && info.Mode()&fs.ModeSticky != 0}
	p.owner, p.group = ownerOf(info)
	p.within = len(w.places) > 0 && w.last().sticky
	return p
}

func (w *pathWalk) add(path string, info fs.FileInfo) {
	w.places = append(w.places, w.place(path, info))
}

// addAgain returns to a directory above, through which the way has led already.
func (w *pathWalk) addAgain(to string) {
	n := slices.IndexFunc(w.places, func(p place) bool { return p.path == to })
	w.places = append(w.places, w.places[n])
}

func (w *pathWalk) last() *place { return &w.places[len(w.places)-1] }

// verdict returns an *Error with all that is weak, nil if nothing is.
func (w *pathWalk) verdict(path string) error {
	if !enforced {
		return nil
	}
	e := &Error{Path: path}
	end := len(w.places) - 1
	if w.file != "" {
		end-- // the file and the directory it lies in
	}
	for i, p := range w.places {
		e.addWeak(w.user.weak(p, i >= end && !w.missing))
	}
	for _, p := range w.links {
		e.addWeak(Weak{Path: p.path, Mode: p.mode, Owner: p.owner, Foreign: !w.user.trusts(p.owner)})
	}
	if len(e.Weak) == 0 {
		return nil
	}
	return e
}

// addWeak adds a place that is weak, once.
func (e *Error) addWeak(w Weak) {
	known := func(k Weak) bool { return k.Path == w.Path }
	if (w.Open || w.Foreign) && !slices.ContainsFunc(e.Weak, known) {
		e.Weak = append(e.Weak, w)
	}
}

// weak judges a place. A final one is a file, or the directory that counts.
func (u user) weak(p place, final bool) Weak {
	const forGroup, forAll = 0o020, 0o002
	private := p.group == 0 || p.group == p.owner || p.group == int(u)
	open := p.mode&forAll != 0 || p.mode&forGroup != 0 && (!private || p.own)
	anybodys := u == 0 && !final && !p.within
	return Weak{
		Path: p.path, Mode: p.mode, Owner: p.owner,
		Open: open && (!p.sticky || p.own), Foreign: !anybodys && !u.trusts(p.owner),
	}
}

// trusts reports whether an owner may change what this user relies on.
func (u user) trusts(owner int) bool { return owner == 0 || owner == int(u) }

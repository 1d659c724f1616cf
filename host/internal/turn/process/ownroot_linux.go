package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// enterOwnRoot gives the process a root directory that has only what restrictFiles lets it
// read. Landlock alone hides neither attributes of files nor sockets with a path. Without
// the privilege, as for a host that is not root, it does nothing.
func enterOwnRoot(s spec) error {
	err := unix.Unshare(unix.CLONE_NEWNS)
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("have mounts of its own: %w", err)
	}
	own, err := unix.Open(s.Dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	r := ownRoot{at: s.Dir}
	if err := unix.Mount("tmpfs", r.at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=64k,mode=755"); err != nil {
		return fmt.Errorf("mount its root: %w", err)
	}
	if err := r.fill(s, "/proc/self/fd/"+strconv.Itoa(own)); err != nil {
		return err
	}
	if err := errors.Join(r.enter(), unix.Close(own)); err != nil {
		return fmt.Errorf("enter its root: %w", err)
	}
	return os.Chdir(s.Dir)
}

// ownRoot is a root directory under construction.
type ownRoot struct {
	at    string
	bound []string // directories of the present root that are mounted in it
}

// fill mounts what the process needs. own is another path of its directory, which is
// mounted last and over everything else.
func (r *ownRoot) fill(s spec, own string) error {
	system := slices.Concat([]string{"/proc"}, systemDirs[:], systemFiles[:], devices[:], readOnlyDevices[:],
		[]string{"/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"})
	for _, path := range system {
		if err := r.provide(path, "", 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("provide %s: %w", path, err)
		}
	}
	for _, path := range s.Read {
		if err := r.provide(path, "", 0); err != nil {
			return fmt.Errorf("provide %s: %w", path, err)
		}
	}
	if err := r.provide(s.Dir, own, 0); err != nil {
		return fmt.Errorf("provide its directory: %w", err)
	}
	return unix.Mount("", r.at, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "")
}

// maxLinks bounds the symbolic links on the way to a path.
const maxLinks = 40

// provide makes a path lead to the same file as it does now, over the same symbolic links.
// A source that is not empty is mounted instead of the file.
func (r *ownRoot) provide(path, source string, links int) error {
	names := strings.Split(strings.Trim(filepath.Clean(path), "/"), "/")
	for i, at := 0, ""; i < len(names); i++ {
		at += "/" + names[i]
		info, err := os.Lstat(at)
		switch {
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			return r.provideLink(at, filepath.Join(names[i+1:]...), source, links)
		case i == len(names)-1:
			return r.bind(at, source, info.IsDir())
		case !r.has(at):
			if err := os.Mkdir(r.at+at, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	}
	return nil
}

// provideLink copies a symbolic link, and provides the rest of the path behind it.
func (r *ownRoot) provideLink(link, rest, source string, links int) error {
	target, err := os.Readlink(link)
	if err != nil {
		return err
	}
	if links >= maxLinks {
		return unix.ELOOP
	}
	if !r.has(link) {
		if err := os.Symlink(target, r.at+link); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(link), target)
	}
	return r.provide(filepath.Join(target, rest), source, links+1)
}

// has reports whether a path is in a directory that is mounted already.
func (r *ownRoot) has(path string) bool {
	for _, dir := range r.bound {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// bind mounts a file or directory at its path in the new root.
func (r *ownRoot) bind(path, source string, isDir bool) error {
	if source == "" && r.has(path) {
		return nil
	}
	var err error
	switch {
	case r.has(path): // its mount point is there
	case isDir:
		err = os.Mkdir(r.at+path, 0o755)
	default:
		err = os.WriteFile(r.at+path, nil, 0o644)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if isDir {
		r.bound = append(r.bound, path)
	}
	if source != "" { // without what is mounted on it, which is the new root
		return unix.Mount(source, r.at+path, "", unix.MS_BIND, "")
	}
	return unix.Mount(path, r.at+path, "", unix.MS_BIND|unix.MS_REC, "")
}

// enter makes it the root and lets go of the old one. A root in the initial memory disk
// cannot be replaced; there the process keeps no way to it, see pivot_root(2).
func (r *ownRoot) enter() error {
	if err := os.Chdir(r.at); err != nil {
		return err
	}
	err := unix.PivotRoot(".", ".")
	switch {
	case err == nil:
		return unix.Unmount(".", unix.MNT_DETACH)
	case errors.Is(err, unix.EINVAL):
		return unix.Chroot(".")
	}
	return err
}

//go:build unix

package diskspace

import (
	"os"

	"golang.org/x/sys/unix"
)

// Of returns what the file system of a directory still takes.
func Of(dir string) (Free, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return Free{}, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	// The types of the fields differ between systems.
	return Free{Bytes: uint64(s.Bavail) * uint64(s.Bsize), Files: uint64(s.Ffree), Counted: s.Files > 0}, nil //nolint:unconvert // see above
}

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// runDirs begins the names of the directories of runs that keep nothing.
const runDirs = "skep-run-"

// youngDir is the age at which a directory may be without its mark, because its
// run has only just made it.
const youngDir = time.Minute

// makeRunDir makes a directory for a run. It is marked as in use until remove is
// called or the process ends, however it ends.
func makeRunDir() (dir string, remove func() error, err error) {
	dir, err = os.MkdirTemp("", runDirs)
	if err != nil {
		return "", nil, err
	}
	mark, err := markDir(dir)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, func() error { return errors.Join(os.RemoveAll(dir), mark.Close()) }, nil
}

// markDir takes the lock of a directory, which only one process can have.
func markDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(&os.PathError{Op: "lock", Path: dir, Err: err}, f.Close())
	}
	return f, nil
}

// sweepRunDirs removes what killed runs of this user have left behind. What cannot
// be removed is no business of the run that comes after.
func sweepRunDirs() {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), runDirs+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		var info unix.Stat_t
		if err := unix.Lstat(dir, &info); err != nil || info.Uid != uint32(os.Geteuid()) ||
			time.Since(time.Unix(info.Mtim.Unix())) < youngDir {
			continue
		}
		if mark, err := markDir(dir); err == nil {
			_ = errors.Join(os.RemoveAll(dir), mark.Close())
		}
	}
}

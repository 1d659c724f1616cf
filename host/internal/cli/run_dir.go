package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"skep/host/internal/filelock"
	"skep/host/internal/pathcheck"
)

// runDirs begins the names of the directories of runs that keep nothing.
const runDirs = "skep-run-"

// markName is the file in a directory that its run has locked.
const markName = "in-use"

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
	return dir, func() error { return removeDir(dir, mark) }, nil
}

// removeDir removes a directory. Its mark is closed first, because Windows removes no
// file that is open.
func removeDir(dir string, mark *os.File) error {
	return errors.Join(mark.Close(), os.RemoveAll(dir))
}

// markDir takes the lock of a directory, which only one process can have.
func markDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, markName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := filelock.TryExclusive(f); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
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
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || !pathcheck.Own(info) || time.Since(info.ModTime()) < youngDir {
			continue
		}
		if mark, err := markDir(dir); err == nil {
			_ = removeDir(dir, mark)
		}
	}
}

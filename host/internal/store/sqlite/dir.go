package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"skep/host/internal/pathcheck"
	"skep/host/internal/store/atomicfile"
)

// Names inside a data directory.
const (
	fileName    = "skep.db"
	lockName    = "lock"
	ignoreName  = ".gitignore"
	keyringName = "keyring"
)

// PrepareDir makes a data directory if it is missing and refuses one that others could
// change under us: write access is enough to replace the database.
func PrepareDir(dir string) error {
	if err := makeDir(dir); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory: choose another data directory", dir)
	}
	if err := pathcheck.Dir(dir); err != nil {
		return err
	}
	return createFile(dir, ignoreName, []byte("*\n"))
}

// makeDir is os.MkdirAll that lasts: the parent of each new directory is synced,
// so that a power cut cannot take the store away with its directory.
func makeDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	switch {
	case err == nil:
		return atomicfile.SyncDir(os.Open(filepath.Dir(dir)))
	case errors.Is(err, fs.ErrExist):
		return checkLink(dir) // PrepareDir sees what it is
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(dir)
	if _, there := os.Stat(parent); there == nil {
		return err // some file systems, such as /proc, take no directories
	}
	if err := makeDir(parent); err != nil {
		return err
	}
	return makeDir(dir)
}

// checkLink refuses a symbolic link to what is not there: no directory can be made
// in it, nor of its name.
func checkLink(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	to, err := os.Readlink(dir)
	if err != nil {
		return err
	}
	return fmt.Errorf("%s is a link to %s, which is not there: make that directory, or choose another data directory", dir, to)
}

// createFile makes a file that only its owner can read, unless it exists. The
// directory is synced, so that the name lasts as well as what is synced into
// the file later.
func createFile(dir, name string, content []byte) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return atomicfile.SyncDir(os.Open(dir))
}

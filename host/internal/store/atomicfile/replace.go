// Package atomicfile owns how a small file is replaced so that a crash leaves the
// old one or the new one, and how what it held before is wiped. It must not know
// what the file holds.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// PartSuffix ends the name of a file that is not whole yet.
const PartSuffix = ".part"

// Replace puts content in the place of a file that only its owner may read, and
// returns after the change is durable. Two calls for one path must not overlap.
func Replace(path string, content []byte) error {
	// One that a crash has left behind may belong to anybody by now.
	if err := remove(path + PartSuffix); err != nil {
		return err
	}
	if err := writeAndRename(path, content); err != nil {
		return errors.Join(err, remove(path+PartSuffix))
	}
	return nil
}

// writeAndRename writes a part and gives it its name. A part is left when it fails.
func writeAndRename(path string, content []byte) error {
	part := path + PartSuffix
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return Rename(part, path)
}

// remove removes a file that need not be there.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncDir makes the names in the directory of path last.
func syncDir(path string) error { return SyncDir(os.Open(filepath.Dir(path))) }

// SyncDir makes the names in an opened directory last, and closes it. Windows syncs no
// directories.
func SyncDir(dir *os.File, err error) error {
	if err != nil {
		return err
	}
	if runtime.GOOS != "windows" {
		err = dir.Sync()
	}
	return errors.Join(err, dir.Close())
}

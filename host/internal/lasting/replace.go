// Package lasting owns how a small file is replaced so that a crash leaves the
// old one or the new one. It must not know what the file holds.
package lasting

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace puts content in the place of a file that only its owner may read, and
// returns after the change is durable. Two calls for one path must not overlap.
func Replace(path string, content []byte) error {
	part := path + ".part"
	// One that a crash has left behind may belong to anybody by now.
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

package atomicfile

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
)

// Create writes a file whole or not at all, and returns after it is durable. Several
// calls for one path may overlap; the last to end wins. A crash may leave a file whose
// name ends with [PartSuffix] behind.
func Create(path string, mode fs.FileMode, write func(io.Writer) error) error {
	part := path + "." + rand.Text() + PartSuffix
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if err = errors.Join(write(f), f.Sync(), f.Close()); err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return syncDir(path)
}

// Rename gives a file or directory another name in the same directory, and returns after
// that is durable.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDir(to)
}

// CreateBytes is [Create] for content that is in memory.
func CreateBytes(path string, mode fs.FileMode, content []byte) error {
	return Create(path, mode, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

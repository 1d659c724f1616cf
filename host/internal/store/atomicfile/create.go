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
	return create(path, mode, write, os.Rename)
}

// CreateNew is [Create] for a file that must not be there: one that exists is
// [fs.ErrExist]. Of several calls for one path one succeeds.
func CreateNew(path string, mode fs.FileMode, content []byte) error {
	return create(path, mode, writeAll(content), func(part, path string) error {
		if err := os.Link(part, path); err != nil {
			return err
		}
		return os.Remove(part)
	})
}

func create(path string, mode fs.FileMode, write func(io.Writer) error, name func(part, path string) error) error {
	part := path + "." + rand.Text() + PartSuffix
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if err = errors.Join(write(f), f.Sync(), f.Close()); err == nil {
		err = name(part, path)
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
	return Create(path, mode, writeAll(content))
}

func writeAll(content []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}
}

package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// oldSuffix is what the name of a replaced file ends with until it is wiped.
const oldSuffix = ".old"

// ReplaceWiped is [Replace] for secrets: what the file held before is written
// over with zeros before it is let go. A crash in between leaves that to
// [WipeLeft]. The file system must know hard links.
//
// It wipes what the file system shows as the file's place. Copies that a file
// system or a disk keeps by itself it does not reach.
func ReplaceWiped(path string, content []byte) error {
	if err := WipeLeft(path); err != nil {
		return err
	}
	// The second name keeps what is replaced within reach.
	if err := os.Link(path, path+oldSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(writeAndRename(path, content), WipeLeft(path))
}

// WipeLeft wipes what a call of [ReplaceWiped] for path has left behind that was
// cut short. No other process may use the files then.
func WipeLeft(path string) error {
	var errs []error
	for _, name := range []string{path + PartSuffix, path + oldSuffix} {
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && info.Mode().IsRegular() {
			err = wipeUnless(path, name, info)
		}
		if err == nil {
			err = os.Remove(name)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// wipeUnless wipes a file unless it is the one at path under another name.
func wipeUnless(path, name string, info fs.FileInfo) error {
	live, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && os.SameFile(live, info) {
		return nil
	}
	// A new file that is not yet the one at path after a crash must find the old.
	if err := syncDir(path); err != nil {
		return err
	}
	return Wipe(name)
}

// Wipe writes over a file with zeros, durably. It does not remove it.
func Wipe(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		_, err = io.CopyN(f, zeros{}, info.Size())
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// zeros is an endless row of them.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

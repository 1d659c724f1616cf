package pathcheck

import (
	"errors"
	"os"
	"syscall"
)

// OpenRegular opens a file for reading, and nothing else: opening a pipe waits for its
// writer, and a device may never end.
func OpenRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = unfit(path, info.Mode())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

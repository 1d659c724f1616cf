//go:build unix

package filelock

import (
	"errors"
	"os"
	"syscall"
)

// TryExclusive locks a file that no process has locked, or returns ErrLocked.
func TryExclusive(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// Exclusive waits for the lock that one process can have.
func Exclusive(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }

// Shared waits for the lock that several processes can have.
func Shared(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_SH) }

// Unlock releases the lock. Closing the file does not, while a process that is just
// being started has a copy of it.
func Unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// Truncate cuts a file that is open for appending.
func Truncate(f *os.File, size int64) error { return f.Truncate(size) }

// Open opens a file that may be renamed while it is open.
func Open(path string, flags int, mode os.FileMode) (*os.File, error) {
	return os.OpenFile(path, flags, mode)
}

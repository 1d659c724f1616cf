package filelock

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// TryExclusive locks a file that no process has locked, or returns ErrLocked.
func TryExclusive(f *os.File) error {
	err := lock(f, windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}

// Exclusive waits for the lock that one process can have.
func Exclusive(f *os.File) error { return lock(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// Shared waits for the lock that several processes can have.
func Shared(f *os.File) error { return lock(f, 0) }

// Unlock releases the lock.
func Unlock(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, beyond())
}

func lock(f *os.File, flags uint32) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, beyond())
}

// beyond is a place after the end of every file: what is locked here, others cannot read.
func beyond() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: 1 << 30} }

// Truncate cuts a file that is open for appending, which takes a right that its handle
// does not have.
func Truncate(f *os.File, size int64) error { return os.Truncate(f.Name(), size) }

// Open opens a file that may be renamed while it is open, which os.OpenFile does not allow.
func Open(path string, flags int, mode os.FileMode) (*os.File, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return root.OpenFile(filepath.Base(path), flags, mode)
}

package sqlite

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"skep/host/internal/filelock"
)

// ErrInUse: another process holds the data directory.
var ErrInUse = errors.New("data directory is in use")

// lock is the exclusive right to a data directory. Its file is never removed: a waiter
// on a removed file would hold a lock on nothing.
type lock struct{ f *os.File }

func takeLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = filelock.TryExclusive(f)
	if errors.Is(err, filelock.ErrLocked) {
		err = fmt.Errorf("%w by %s: stop it first, or choose another data directory (lock file %s)", ErrInUse, holder(f), path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l := &lock{f}
	if err := l.sign(); err != nil {
		return nil, errors.Join(err, l.release())
	}
	return l, nil
}

// sign leaves our process id for processes that find the directory locked.
func (l *lock) sign() error {
	if err := l.f.Truncate(0); err != nil {
		return err
	}
	_, err := l.f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// release gives the directory free for the next host.
func (l *lock) release() error {
	return errors.Join(l.f.Truncate(0), filelock.Unlock(l.f), l.f.Close())
}

func holder(f *os.File) string {
	b := make([]byte, 32)
	n, _ := f.ReadAt(b, 0)
	if pid := strings.TrimSpace(string(b[:n])); pid != "" {
		return "process " + pid
	}
	return "another process"
}

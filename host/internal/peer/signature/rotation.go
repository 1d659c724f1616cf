package signature

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"skep/host/internal/filelock"
	"skep/host/internal/store/atomicfile"
)

// Overlap is how long a new key is published before it signs: those who verify keep the
// keys that they have fetched for a while.
const Overlap = 24 * time.Hour

// Files of a [Rotation] beside the file of the key that signs.
const (
	nextSuffix = ".next"
	oldSuffix  = ".old"
)

// RotationSuffixes are what the names of the files of a [Rotation] end with; the key that
// signs comes last.
func RotationSuffixes() []string { return []string{nextSuffix, oldSuffix, ""} }

// Rotation is a key that signs, with the keys that are published besides.
type Rotation struct {
	Current Key
	// Next signs from NextFrom on, if it is set. Old signed before the current one.
	Next, Old *Key
	NextFrom  time.Time
}

// ReadRotation reads the keys at path. A missing file is [fs.ErrNotExist].
func ReadRotation(path string) (r Rotation, err error) {
	unlock, err := lockRotation(path, filelock.Shared)
	if err != nil {
		return r, err
	}
	defer unlock()
	return readLocked(path)
}

// lockRotation locks the file of the key that signs, as it is named now: other processes
// rename no key meanwhile.
func lockRotation(path string, lock func(*os.File) error) (unlock func(), err error) {
	for {
		f, err := filelock.Open(path, os.O_RDONLY, 0)
		if err != nil {
			return nil, err
		}
		unlock := func() { _ = errors.Join(filelock.Unlock(f), f.Close()) }
		named, err := lockNamed(f, path, lock)
		if named && err == nil {
			return unlock, nil
		}
		if unlock(); err != nil {
			return nil, err
		}
	}
}

// lockNamed waits for the lock of a file, and reports whether path names the file still.
func lockNamed(f *os.File, path string, lock func(*os.File) error) (bool, error) {
	if err := lock(f); err != nil {
		return false, err
	}
	locked, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(locked, named), err
}

// readLocked reads the keys at a path that is locked.
func readLocked(path string) (r Rotation, err error) {
	if r.Current, err = ReadKeyFile(path); err != nil {
		return r, err
	}
	if r.Old, err = readOptionalKey(path + oldSuffix); err != nil {
		return r, err
	}
	if r.Next, err = readOptionalKey(path + nextSuffix); err != nil || r.Next == nil {
		return r, err
	}
	info, err := os.Stat(path + nextSuffix)
	if err != nil {
		return r, err
	}
	r.NextFrom = info.ModTime().Add(Overlap)
	return r, nil
}

// readOptionalKey reads a key, nil for none.
func readOptionalKey(path string) (*Key, error) {
	key, err := ReadKeyFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &key, nil
}

// OpenRotation reads the keys at path, or makes the first one. A next key whose time has
// come takes the place of the current one, which becomes the old one.
func OpenRotation(path string, now time.Time) (r Rotation, made bool, err error) {
	if _, made, err = OpenKeyFile(path); err != nil {
		return r, false, err
	}
	unlock, err := lockRotation(path, filelock.Exclusive)
	if err != nil {
		return r, made, err
	}
	defer unlock()
	if r, err = readLocked(path); err != nil || r.Next == nil || now.Before(r.NextFrom) {
		return r, made, err
	}
	if err := promote(path); err != nil {
		return r, made, fmt.Errorf("put the new signing key in force: %w", err)
	}
	r, err = readLocked(path)
	return r, made, err
}

// promote makes the next key the current one. A crash in between leaves the next key,
// whose promotion is repeated: the current file is linked and not moved.
func promote(path string) error {
	if err := os.Remove(path + oldSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Link(path, path+oldSuffix); err != nil {
		return err
	}
	return os.Rename(path+nextSuffix, path)
}

// ErrRotating is returned while a new key waits for its time.
var ErrRotating = errors.New("a new key waits for its time already")

// Rotate makes the next key of those at path, which signs after [Overlap].
func Rotate(path string, now time.Time) (Rotation, error) {
	r, _, err := OpenRotation(path, now)
	if err != nil {
		return r, err
	}
	if r.Next != nil {
		return r, fmt.Errorf("%w: it signs from %s on", ErrRotating, r.NextFrom.UTC().Format(time.RFC3339))
	}
	if err := atomicfile.CreateNew(path+nextSuffix, 0o600, NewKey().PEM()); err != nil {
		return r, fmt.Errorf("write the new signing key: %w", err)
	}
	return ReadRotation(path)
}

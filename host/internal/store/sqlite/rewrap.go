package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"skep/host/internal/store/keyring"
)

// Rewrap wraps the keys of an unused data directory with another key:
// from is the one that wraps them now, nil for none, and to the one that shall,
// nil to leave them plain. The database is not looked at. It returns how many
// keys there are, and changed false when they are wrapped that way already.
func Rewrap(dir string, from, to []byte) (n int, changed bool, err error) {
	n, changed, err = rewrap(dir, from, to)
	if err != nil {
		return 0, false, fmt.Errorf("rewrap the keys in %s: %w", dir, addAdvice(err))
	}
	return n, changed, nil
}

func rewrap(dir string, from, to []byte) (n int, changed bool, err error) {
	l, err := takeLock(filepath.Join(dir, lockName))
	if err != nil {
		return 0, false, err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	path := filepath.Join(dir, keyringName)
	for _, key := range [][]byte{to, from} {
		// It is looked at first: to be opened is to be wrapped.
		r, err := keyring.Open(path, keyring.Options{KEK: key, ReadOnly: true})
		switch {
		case err == nil && !r.Exists():
			return 0, false, fmt.Errorf("there is no keyring in %s: nothing is sealed yet", dir)
		case err == nil && !r.Wrapped():
			from = nil
		case err == nil && to != nil && bytes.Equal(key, to):
			return len(r.Entries()), false, nil
		}
	}
	ring, err := keyring.Open(path, keyring.Options{KEK: from})
	if err != nil {
		return 0, false, err
	}
	if to == nil && !ring.Wrapped() {
		return len(ring.Entries()), false, nil
	}
	return len(ring.Entries()), true, ring.Rewrap(to)
}

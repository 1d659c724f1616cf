package signature

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"skep/host/internal/pathcheck"
	"skep/host/internal/store/atomicfile"
)

// KeyFileName is the file of a host's signing key in its data directory.
const KeyFileName = "letters.key"

// OpenKeyFile reads a signing key, or makes one with its directory.
func OpenKeyFile(path string) (key Key, made bool, err error) {
	key, err = ReadKeyFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, false, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return key, false, err
	}
	key = NewKey()
	if err = atomicfile.CreateNew(path, 0o600, key.PEM()); errors.Is(err, fs.ErrExist) {
		key, err = ReadKeyFile(path) // another process came first
		return key, false, err
	}
	if err != nil {
		return key, false, fmt.Errorf("write the signing key: %w", err)
	}
	return key, true, nil
}

// ReadKeyFile reads a signing key. A missing file is [fs.ErrNotExist].
func ReadKeyFile(path string) (key Key, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return key, err
	}
	if mode := info.Mode().Perm(); pathcheck.Grants(mode, 0o077) {
		return key, fmt.Errorf("others could read the signing key (mode %#o): run chmod 600 %s", mode, path)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return key, err
	}
	if key, err = ParseKey(raw); err != nil {
		return key, fmt.Errorf("%s: %w; put a copy of the key back, or delete the file to get a new key, which all who verify signatures have to be told", path, err)
	}
	return key, nil
}

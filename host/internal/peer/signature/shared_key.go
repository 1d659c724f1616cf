package signature

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// Store keeps secrets that hosts share.
type Store interface {
	// ReadSecret returns a secret, [fs.ErrNotExist] where there is none.
	ReadSecret(ctx context.Context, name string) ([]byte, error)
	// KeepSecret keeps a secret, unless there is one of its name, and returns the one that is
	// kept. After an error it may be kept.
	KeepSecret(ctx context.Context, name string, secret []byte) (kept []byte, made bool, err error)
}

// OpenSharedKey reads the signing key of hosts that share a store, or makes one, which made reports. The first key is the one in the
// file at path, if there is one: peers know the key that the host had before it shared one. The file stays, for
// earlier versions.
func OpenSharedKey(ctx context.Context, s Store, path string) (key Key, made bool, err error) {
	text, err := s.ReadSecret(ctx, KeyFileName)
	if errors.Is(err, fs.ErrNotExist) {
		key, err = ReadKeyFile(path)
		isNew := errors.Is(err, fs.ErrNotExist)
		if isNew {
			key, err = NewKey(), nil
		}
		if err != nil {
			return Key{}, false, err
		}
		text, made, err = s.KeepSecret(ctx, KeyFileName, key.PEM())
		made = made && isNew
	}
	if err != nil {
		return Key{}, false, err
	}
	if key, err = ParseKey(text); err != nil {
		return Key{}, false, fmt.Errorf("the signing key on the server cannot be read: %w; make a new one with skep peer key rotate, which all who verify signatures have to be told", err)
	}
	return key, made, nil
}

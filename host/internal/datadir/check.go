package datadir

import (
	"context"
	"path/filepath"

	"skep/host/internal/store/keyring"
	"skep/host/internal/store/sqlite"
)

// CheckKeyring returns why the keys of the directory cannot be used, also while a host uses
// it: a *[KeyError] where the key that wraps them is missing, or another.
func (d Data) CheckKeyring() error {
	opt, err := ringOptions(d.Store.Keyring)
	if err != nil {
		return &KeyError{err}
	}
	opt.ReadOnly = true
	_, err = keyring.Open(filepath.Join(d.Dir, keyringName), *opt)
	return asKeyError(err)
}

// CheckStore reads the whole database, also while a host uses it, and returns what the engine
// says is damaged in it, empty for nothing. The error is why it cannot be read at all.
func (d Data) CheckStore(ctx context.Context) (damaged string, err error) {
	err = d.read(ctx, func(r *sqlite.Reader) (err error) {
		damaged, err = r.Check(ctx)
		return err
	})
	if sqlite.IsDamage(err) {
		return err.Error(), nil
	}
	return damaged, err
}

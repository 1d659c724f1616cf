package datadir

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skep/host/internal/definition/config"
	"skep/host/internal/store/keyring"
	"skep/host/internal/store/sqlite"
)

// Keyring is what a data directory's keyring holds, without the keys.
type Keyring struct {
	// Wrapped: the keys are useless without the key of [store] keyring.
	Wrapped bool
	Keys    []Key
}

// Key is a key of a tenant.
type Key struct {
	// ID is its number in hexadecimal.
	ID     string
	Tenant string
	// State is "current", "retired" or "destroyed".
	State string
	// Named: something in the database is sealed with it.
	Named bool
	// Times are in UTC, and zero for what has not happened.
	Created, Retired, Destroyed time.Time
}

// Keyring lists the keys, also while a host uses the directory.
func (d Data) Keyring(ctx context.Context) (out Keyring, err error) {
	err = d.read(ctx, func(r *sqlite.Reader) error {
		ring, named, err := r.Keys(ctx)
		if err != nil || ring == nil {
			return err
		}
		out.Wrapped = ring.Wrapped()
		for _, e := range ring.Entries() {
			out.Keys = append(out.Keys, Key{
				ID: e.ID.String(), Tenant: e.Tenant, State: e.State.String(), Named: named[e.ID],
				Created: e.Created, Retired: e.Retired, Destroyed: e.Destroyed,
			})
		}
		return nil
	})
	return out, err
}

// Rewrap wraps the keys, which are wrapped with from, with the key in d.Store instead.
// Without one they are left plain. It returns how many keys there are, and changed
// false when there was nothing to do.
func (d Data) Rewrap(ctx context.Context, from config.Secret) (n int, changed bool, err error) {
	defer func() { err = d.record("keyring.rewrap", keyringName, err) }()
	var keks [2][]byte
	for i, key := range []config.Secret{from, d.Store.Keyring} {
		if key == "" {
			continue
		}
		if keks[i], err = keyring.ParseKEK(key.Reveal()); err != nil {
			return 0, false, &KeyError{err}
		}
	}
	if d.Store.Driver == config.DriverPostgres {
		if err := d.hasStore(ctx); err != nil {
			return 0, false, err
		}
		n, changed, err = sqlite.RewrapServer(ctx, server(d.Store), keks[0], keks[1])
	} else {
		n, changed, err = sqlite.Rewrap(d.Dir, keks[0], keks[1])
	}
	switch {
	case errors.Is(err, keyring.ErrWrapped):
		err = &KeyError{errors.New("the keys are wrapped with another key: --from has to name it")}
	case errors.Is(err, keyring.ErrWrongKEK):
		err = &KeyError{errors.New("the key that --from names is not the one that wraps the keys")}
	}
	return n, changed, err
}

// Prune destroys the retired keys that nothing in the database names, and that
// were retired before a time. It returns how many.
func (d Data) Prune(ctx context.Context, before time.Time) (n int, err error) {
	defer func() { err = d.record("keyring.prune", keyringName, err) }()
	err = d.own(ctx, func(s *sqlite.Store) error {
		if n, err = s.DropRetired(ctx, before); err != nil {
			return fmt.Errorf("prune the keyring: %w", err)
		}
		return nil
	})
	return n, err
}

package keyring

import (
	"cmp"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"
)

// Errors of a [Ring] and of [Open].
var (
	// ErrDestroyed says that the key was destroyed on purpose.
	ErrDestroyed = errors.New("its key was destroyed when its tenant was erased")
	// ErrUnknown says that the ring never had the key.
	ErrUnknown = errors.New("its key is not in the keyring")
	// ErrSealed says that sealed bytes do not open: they are damaged, or lie in
	// another place than the one they were sealed for.
	ErrSealed = errors.New("sealed bytes do not open: they are damaged or were moved")
	// ErrWrapped and ErrWrongKEK say that the wrapping key is missing, or another.
	ErrWrapped  = errors.New("its keys are wrapped: set [store] keyring in swarm.toml to the key that wraps them")
	ErrWrongKEK = errors.New("the key in [store] keyring is not the one that wraps it: set [store] keyring in swarm.toml to the key it was last used with")
)

// ID is the number of a key, random and never 0.
type ID uint32

// State is what a key can still do.
type State int

// The states of a key.
const (
	Unknown State = iota
	// Current keys seal and open.
	Current
	// Retired keys only open.
	Retired
	// Destroyed keys are gone.
	Destroyed
)

// Options of [Open]. The zero value is usable.
type Options struct {
	// KEK is the 32 bytes that wrap the keys in the file; nil leaves them plain.
	KEK []byte
	// Now dates keys; nil means [time.Now].
	Now func() time.Time
}

// Ring is a keyring in use. Its methods are safe for concurrent use.
type Ring struct {
	path string
	now  func() time.Time

	mu   sync.RWMutex
	kek  cipher.AEAD // nil leaves keys plain
	file bool        // there is one
	keys map[ID]*key
	// current holds the key of each tenant that seals.
	current map[string]*key
	sealers map[ID]*Sealer
	openers map[origin]cipher.AEAD
}

// key is one data key. secret is nil once it is destroyed.
type key struct {
	id                          ID
	tenant                      string
	created, retired, destroyed time.Time
	secret                      []byte
}

func (k *key) state() State {
	switch {
	case k == nil:
		return Unknown
	case !k.destroyed.IsZero():
		return Destroyed
	case !k.retired.IsZero():
		return Retired
	}
	return Current
}

// Open reads the keyring at path. Without a file the ring is empty, and the
// file is made with the first key.
func Open(path string, opts Options) (*Ring, error) {
	r := &Ring{
		path: path, now: opts.Now, keys: map[ID]*key{}, current: map[string]*key{},
		sealers: map[ID]*Sealer{}, openers: map[origin]cipher.AEAD{},
	}
	if r.now == nil {
		r.now = time.Now
	}
	var err error
	if r.kek, err = newKEK(opts.KEK); err != nil {
		return nil, err
	}
	if err := r.load(); err != nil {
		return nil, fmt.Errorf("keyring %s: %w", path, err)
	}
	return r, nil
}

// Path returns the path of the file.
func (r *Ring) Path() string { return r.path }

// Exists reports whether the ring has a file.
func (r *Ring) Exists() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.file
}

// State returns what a key can do.
func (r *Ring) State(id ID) State {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.keys[id].state()
}

// Retired returns the keys retired before a time.
func (r *Ring) Retired(before time.Time) []ID {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var ids []ID
	for id, k := range r.keys {
		if k.state() == Retired && k.retired.Before(before) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Sealer returns what seals for a tenant. The key is made, and is on the disk,
// when the tenant has none.
func (r *Ring) Sealer(tenant string) (*Sealer, error) {
	r.mu.RLock()
	s, ok := r.sealerOf(tenant)
	r.mu.RUnlock()
	if ok {
		return s, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.sealerOf(tenant); ok {
		return s, nil
	}
	if r.current[tenant] == nil {
		if err := r.add(tenant); err != nil {
			return nil, err
		}
	}
	return r.newSealer(r.current[tenant])
}

func (r *Ring) sealerOf(tenant string) (*Sealer, bool) {
	k := r.current[tenant]
	if k == nil {
		return nil, false
	}
	s, ok := r.sealers[k.id]
	return s, ok
}

// Rotate gives a tenant a new key to seal with and retires the one it has. The
// new one is on the disk when it returns.
func (r *Ring) Rotate(tenant string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.add(tenant)
}

// add makes a key for a tenant. The caller holds r.mu.
func (r *Ring) add(tenant string) error {
	if !utf8.ValidString(tenant) {
		return fmt.Errorf("keyring: the name of tenant %q is not UTF-8", tenant)
	}
	fresh := make([]byte, 32+4)
	if _, err := rand.Read(fresh); err != nil {
		return err
	}
	k := &key{id: ID(binary.BigEndian.Uint32(fresh[32:])), tenant: tenant, created: r.now().UTC(), secret: fresh[:32:32]}
	if k.id == 0 || r.keys[k.id] != nil {
		return r.add(tenant)
	}
	return r.change(func() {
		if old := r.current[tenant]; old != nil {
			old.retired = k.created
		}
		r.keys[k.id], r.current[tenant] = k, k
	})
}

// Destroy destroys all keys of a tenant. What they sealed cannot be read any
// more, wherever a copy of it lies.
func (r *Ring) Destroy(tenant string) error {
	return r.destroy(func(k *key) bool { return k.tenant == tenant })
}

// Drop destroys retired keys; others it leaves alone.
func (r *Ring) Drop(ids ...ID) error {
	return r.destroy(func(k *key) bool { return k.state() == Retired && slices.Contains(ids, k.id) })
}

func (r *Ring) destroy(which func(*key) bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var doomed []*key
	for _, k := range r.keys {
		if k.state() != Destroyed && which(k) {
			doomed = append(doomed, k)
		}
	}
	if len(doomed) == 0 {
		return nil
	}
	return r.change(func() {
		now := r.now().UTC()
		for _, k := range doomed {
			k.destroyed, k.secret = now, nil
			if r.current[k.tenant] == k {
				delete(r.current, k.tenant)
			}
			delete(r.sealers, k.id)
		}
		clear(r.openers)
	})
}

// Rewrap wraps the keys anew, or with nil leaves them plain.
func (r *Ring) Rewrap(kek []byte) error {
	wrap, err := newKEK(kek)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.kek
	r.kek = wrap
	if err := r.save(); err != nil {
		r.kek = old
		return err
	}
	return nil
}

// change makes a change durable, or undoes it. The caller holds r.mu.
func (r *Ring) change(apply func()) error {
	before := r.clone()
	apply()
	if err := r.save(); err != nil {
		r.keys, r.current = before.keys, before.current
		clear(r.sealers)
		return fmt.Errorf("keyring %s: %w", r.path, err)
	}
	return nil
}

// clone copies the keys as they are.
func (r *Ring) clone() *Ring {
	c := &Ring{keys: make(map[ID]*key, len(r.keys)), current: make(map[string]*key, len(r.current))}
	for id, k := range r.keys {
		same := *k
		c.keys[id] = &same
		if r.current[k.tenant] == k {
			c.current[k.tenant] = &same
		}
	}
	return c
}

// sorted returns the keys in the order they were made.
func (r *Ring) sorted() []*key {
	all := make([]*key, 0, len(r.keys))
	for _, k := range r.keys {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b *key) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.id, b.id))
	})
	return all
}

package keyring

import (
	"cmp"
	"crypto/cipher"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Errors of a [Ring] and of [Open].
var (
	// ErrDestroyed: the key was destroyed on purpose.
	ErrDestroyed = errors.New("its key was destroyed when its tenant was erased")
	// ErrUnknown: the ring never had the key.
	ErrUnknown = errors.New("its key is not in the keyring")
	// ErrSealed: sealed bytes do not open: they are damaged, or lie in
	// another place than the one they were sealed for.
	ErrSealed = errors.New("sealed bytes do not open: they are damaged or were moved")
	// ErrWrapped and ErrWrongKEK: the wrapping key is missing, or another.
	ErrWrapped  = errors.New("its keys are wrapped: set [store] keyring in swarm.toml to the key that wraps them")
	ErrWrongKEK = errors.New("the key in [store] keyring is not the one that wraps it: set [store] keyring in swarm.toml to the key it was last used with")
)

// ID is the number of a key, random and never 0.
type ID uint32

// String gives it in hexadecimal.
func (id ID) String() string { return fmt.Sprintf("%08x", uint32(id)) }

// Options of [Open]. The zero value is usable.
type Options struct {
	// KEK is the 32 bytes that wrap the keys in the file; nil leaves them plain.
	KEK []byte
	// Now dates keys; nil means [time.Now].
	Now func() time.Time
	// ReadOnly opens a keyring that another ring may have open. Nothing is
	// changed, and keys that are made later are not seen.
	ReadOnly bool
}

// Ring is a keyring in use. Its methods are safe for concurrent use.
type Ring struct {
	path     string
	now      func() time.Time
	readOnly bool

	// disk is held to change the text, and taken before mu. What is
	// below it belongs to its holder.
	disk   sync.Mutex
	at     medium
	kek    cipher.AEAD // nil leaves keys plain
	spoilt bool        // the text may be another than the one that was written last

	// mu guards what follows. Only a holder of disk changes keys, once the change
	// is durable.
	mu      sync.RWMutex
	file    bool // there is one
	wrapped bool // its keys are
	keys    map[ID]*key
	// current holds the key of each tenant that seals.
	current map[string]*key
	sealers map[ID]*Sealer
	openers map[origin]cipher.AEAD
	// next gathers the tenants that the next line of the file is for.
	next *pendingKeys
}

// Open reads the keyring at path. Without a file the ring is empty, and the
// file is made with the first key.
func Open(path string, opts Options) (*Ring, error) {
	return open(path, &fileMedium{path: path, readOnly: opts.ReadOnly}, opts)
}

func open(path string, at medium, opts Options) (*Ring, error) {
	r := &Ring{
		path: path, at: at, now: opts.Now, readOnly: opts.ReadOnly, keys: map[ID]*key{}, current: map[string]*key{},
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
		return nil, r.wrapError(err)
	}
	return r, nil
}

func (r *Ring) wrapError(err error) error { return fmt.Errorf("keyring %s: %w", r.path, err) }

// Path returns the path of the file, or the name of the table.
func (r *Ring) Path() string { return r.path }

// Exists reports whether the ring has a file.
func (r *Ring) Exists() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.file
}

// Wrapped reports whether the keys in the file are.
func (r *Ring) Wrapped() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.wrapped
}

// Aside returns how many bytes at the end of the file were no whole line when it
// was opened, and the file they were moved to.
func (r *Ring) Aside() (n int, file string) {
	if f, ok := r.at.(*fileMedium); ok {
		return f.aside, f.asideFile
	}
	return 0, ""
}

// HasKey reports whether a tenant has a key to seal with, so that [Ring.Sealer] makes none.
func (r *Ring) HasKey(tenant string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.current[tenant] != nil
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

// Destroy destroys all keys of a tenant. What they sealed cannot be read any
// more, wherever a copy of it lies.
func (r *Ring) Destroy(tenant string) error {
	_, err := r.destroy(func(k *key) bool { return k.tenant == tenant })
	return err
}

// Drop destroys retired keys; others it leaves alone. It returns how many.
func (r *Ring) Drop(ids ...ID) (n int, err error) {
	return r.destroy(func(k *key) bool { return k.state() == Retired && slices.Contains(ids, k.id) })
}

// destroy replaces the file by one without the secrets of some keys.
func (r *Ring) destroy(which func(*key) bool) (n int, err error) {
	if r.readOnly {
		return 0, r.wrapError(errReadOnly)
	}
	r.disk.Lock()
	defer r.disk.Unlock()
	doomed, err := r.replaceDestroyed(which)
	for errors.Is(err, ErrStale) {
		doomed, err = r.replaceDestroyed(which)
	}
	if len(doomed) == 0 || err != nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range doomed {
		old := r.keys[k.id]
		clear(old.secret)
		r.keys[k.id] = k
		if r.current[k.tenant] == old {
			delete(r.current, k.tenant)
		}
		delete(r.sealers, k.id)
	}
	clear(r.openers)
	return len(doomed), nil
}

// replaceDestroyed replaces the file by one in which some keys are destroyed, and returns them. The
// caller holds r.disk.
func (r *Ring) replaceDestroyed(which func(*key) bool) (doomed []*key, err error) {
	if err := r.refresh(); err != nil {
		return nil, r.wrapError(err)
	}
	all, now := r.sorted(), r.now().UTC()
	for i, k := range all {
		if k.state() != Destroyed && which(k) {
			all[i] = &key{id: k.id, tenant: k.tenant, created: k.created, retired: k.retired, destroyed: now}
			doomed = append(doomed, all[i])
		}
	}
	if len(doomed) == 0 {
		return nil, nil
	}
	if err := r.replace(all, r.kek); err != nil {
		return nil, r.wrapError(err)
	}
	return doomed, nil
}

// Rewrap wraps the keys anew, or with nil leaves the keys of a file plain.
func (r *Ring) Rewrap(kek []byte) error {
	if r.readOnly {
		return r.wrapError(errReadOnly)
	}
	if _, table := r.at.(tableMedium); table && kek == nil {
		return r.wrapError(ErrPlain)
	}
	wrap, err := newKEK(kek)
	if err != nil {
		return err
	}
	r.disk.Lock()
	defer r.disk.Unlock()
	if err := r.refresh(); err != nil {
		return r.wrapError(err)
	}
	if err := r.replace(r.sorted(), wrap); err != nil {
		return r.wrapError(err)
	}
	r.kek = wrap
	return nil
}

// addKey makes a key one of the ring's. The caller holds r.mu.
func (r *Ring) addKey(k *key) {
	if k.state() == Current {
		if old := r.current[k.tenant]; old != nil {
			retired := *old
			retired.retired = k.created
			r.keys[old.id] = &retired
		}
		r.current[k.tenant] = k
	}
	r.keys[k.id] = k
}

// sorted returns the keys in the order they were made.
func (r *Ring) sorted() []*key {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.SortedFunc(maps.Values(r.keys), func(a, b *key) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.id, b.id))
	})
}

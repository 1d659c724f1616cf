package keyring

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"unicode/utf8"
)

// errReadOnly: a ring was opened to read.
var errReadOnly = errors.New("it was opened to read")

// pendingKeys is a line of the file that is on its way. Until it is written, other
// callers that need a key join it.
type pendingKeys struct {
	// wanted says of a tenant whether it gets a key although it has one.
	wanted map[string]bool
	done   chan struct{}
	err    error
}

// Sealer returns what seals for a tenant. The key is made, and is on the disk,
// when the tenant has none. Many tenants that need one at once share the cost.
func (r *Ring) Sealer(tenant string) (*Sealer, error) {
	for {
		if s, err := r.sealer(tenant); s != nil || err != nil {
			return s, err
		}
		if err := r.add(tenant, false); err != nil {
			return nil, err
		}
	}
}

// sealer is nil for a tenant without a key.
func (r *Ring) sealer(tenant string) (*Sealer, error) {
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
	if k := r.current[tenant]; k != nil {
		return r.newSealer(k)
	}
	return nil, nil
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
func (r *Ring) Rotate(tenant string) error { return r.add(tenant, true) }

// add makes a key for a tenant that has none, or with anew for any. The first
// caller writes for all that came until the disk was free.
func (r *Ring) add(tenant string, anew bool) error {
	if !utf8.ValidString(tenant) {
		return fmt.Errorf("keyring: the name of tenant %q is not UTF-8", tenant)
	}
	if r.readOnly {
		return r.wrapError(errReadOnly)
	}
	r.mu.Lock()
	a, first := r.next, r.next == nil
	if first {
		a = &pendingKeys{wanted: map[string]bool{}, done: make(chan struct{})}
		r.next = a
	}
	a.wanted[tenant] = a.wanted[tenant] || anew
	r.mu.Unlock()
	if first {
		r.write(a)
	}
	<-a.done
	return a.err
}

// write makes the keys that are wanted, and has them on the disk before anybody
// gets to see them.
func (r *Ring) write(a *pendingKeys) {
	r.disk.Lock()
	defer r.disk.Unlock()
	defer close(a.done)
	r.mu.Lock()
	r.next = nil
	r.mu.Unlock()
	err := r.writeFresh(a)
	for errors.Is(err, ErrStale) {
		if err = r.loadAgain(); err == nil {
			err = r.writeFresh(a)
		}
	}
	if err != nil {
		a.err = r.wrapError(err)
	}
}

// writeFresh makes the keys that are wanted and not there. The caller holds r.disk.
func (r *Ring) writeFresh(a *pendingKeys) error {
	r.mu.Lock()
	fresh := r.fresh(a)
	r.mu.Unlock()
	if len(fresh) == 0 {
		return nil
	}
	if err := r.append(fresh); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range fresh {
		r.addKey(k)
	}
	return nil
}

// refresh reads the keys that other hosts have made, where they are in a table. The caller holds
// r.disk.
func (r *Ring) refresh() error {
	if _, table := r.at.(tableMedium); !table {
		return nil
	}
	err := r.loadAgain()
	if errors.Is(err, fs.ErrNotExist) && !r.Exists() {
		return nil
	}
	return err
}

// Reload reads the keys that other hosts have made and destroyed, where they are in a table.
func (r *Ring) Reload() error {
	r.disk.Lock()
	defer r.disk.Unlock()
	if err := r.refresh(); err != nil {
		return r.wrapError(err)
	}
	return nil
}

// loadAgain reads all keys anew, and keeps those that it has when they cannot be read. The
// caller holds r.disk.
func (r *Ring) loadAgain() error {
	c, err := r.at.load()
	if err != nil {
		return err
	}
	if err := r.checkKEK(c.Check); err != nil {
		return err
	}
	read := &Ring{kek: r.kek, wrapped: c.Check != nil, keys: map[ID]*key{}, current: map[string]*key{}}
	for _, fk := range c.keys {
		if err := read.addFromFile(fk); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys, r.current = read.keys, read.current
	r.file, r.wrapped, r.spoilt = true, read.wrapped, false
	clear(r.openers)
	maps.DeleteFunc(r.sealers, func(id ID, _ *Sealer) bool { return r.keys[id].state() != Current })
	return nil
}

// lookAgain looks for a key that another host may have made, in a table.
func (r *Ring) lookAgain(id ID) {
	if _, table := r.at.(tableMedium); !table {
		return
	}
	r.disk.Lock()
	defer r.disk.Unlock()
	if r.State(id) == Unknown {
		_ = r.loadAgain() // without it the key stays unknown, which is the error
	}
}

// fresh makes the keys that are wanted. The caller holds r.mu.
func (r *Ring) fresh(a *pendingKeys) (keys []*key) {
	taken := map[ID]bool{0: true}
	for tenant, anew := range a.wanted {
		if !anew && r.current[tenant] != nil {
			continue
		}
		k := &key{tenant: tenant, created: r.now().UTC(), secret: make([]byte, 32)}
		rand.Read(k.secret)
		for taken[k.id] || r.keys[k.id] != nil {
			k.id = randomID()
		}
		taken[k.id] = true
		keys = append(keys, k)
	}
	return keys
}

func randomID() ID {
	var b [4]byte
	rand.Read(b[:])
	return ID(binary.BigEndian.Uint32(b[:]))
}

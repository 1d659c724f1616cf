package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

// Store keeps the lasting entries of hosts that share it, with their tokens.
type Store interface {
	// Swarms lists what is kept, in the order of names. One that is damaged hides no other.
	Swarms(ctx context.Context) ([]Record, error)
	// SwapSwarm replaces a record by another text, or removes it with nil. ok is false, and nothing has
	// changed, where another record than old is stored by now; an old without a revision is none. It is
	// durable on return. After an error it may have happened.
	SwapSwarm(ctx context.Context, old Record, text []byte) (stored Record, ok bool, err error)
}

// Record is an entry as a [Store] keeps it.
type Record struct {
	Name string
	Text []byte
	// Damaged is why the text cannot be read, nil if it can.
	Damaged error
	// Revision changes with each change of the record.
	Revision []byte
}

// recordContent is the form of a record's text.
type recordContent struct {
	Entry
	Token string `json:"auth_token,omitempty"`
}

// read decodes a record.
func (r Record) read() (c recordContent, err error) {
	if r.Damaged != nil {
		return c, r.Damaged
	}
	if err := json.Unmarshal(r.Text, &c); err != nil {
		return c, err
	}
	c.Entry, err = checkEntry(r.Name, c.Entry)
	return c, err
}

// carriedSuffix ends the name of a file whose entries were carried over to a store.
const carriedSuffix = ".moved"

// carryOver brings the entries of a file that a host had before it shared a store, and names the file anew. One that
// is broken off is repeated. An entry that other hosts have already stays as it is.
func (r *Registry) carryOver(ctx context.Context) error {
	entries, err := readFile(r.opt.Path)
	if err != nil || entries == nil {
		return err
	}
	for _, e := range entries {
		text, err := json.Marshal(recordContent{Entry: e})
		if err != nil {
			return err
		}
		_, fresh, err := r.opt.Store.SwapSwarm(ctx, Record{Name: e.Name}, text)
		if err != nil {
			return fmt.Errorf("move the registered swarms of %s into the store: %w", r.opt.Path, err)
		}
		if !fresh {
			r.opt.Logger.Info("a registered swarm of this host's file stays as the store has it", "swarm", e.Name, "file", r.opt.Path)
		}
	}
	if err := os.Rename(r.opt.Path, r.opt.Path+carriedSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the registered swarms of %s are in the store: %w", r.opt.Path, err)
	}
	return nil
}

// beginChange lets one change be made at a time. A file is written with saving held, a store is asked without it:
// nothing else waits for a server.
func (r *Registry) beginChange() (end func()) {
	r.changing.Lock()
	if r.opt.Store != nil {
		return r.changing.Unlock
	}
	r.saving.Lock()
	return func() {
		r.saving.Unlock()
		r.changing.Unlock()
	}
}

// Refresh reads the lasting entries again, which other hosts may have changed.
func (r *Registry) Refresh(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, readTimeout)
	defer stop()
	defer r.beginChange()()
	return r.readStore(ctx)
}

// readStore replaces the registry's entries by the store's. The caller holds changing.
func (r *Registry) readStore(ctx context.Context) error {
	if r.opt.Store == nil {
		return nil
	}
	list, err := r.opt.Store.Swarms(ctx)
	if err != nil {
		return fmt.Errorf("read the registered swarms: %w", err)
	}
	records := map[string]Record{}
	for _, one := range list {
		records[one.Name] = one
	}
	r.saving.Lock()
	defer r.saving.Unlock()
	fixed := slices.DeleteFunc(r.Entries(), func(e Entry) bool { return !e.Fixed })
	r.setRecords(fixed, records)
	r.records = records
	return nil
}

// setRecords replaces the operator's entries and the store's. What was registered for a while stays, unless
// its name is taken. The caller holds saving.
func (r *Registry) setRecords(fixed []Entry, records map[string]Record) {
	before := r.Entries()
	stored, tokens := r.readRecords(records, before)
	all := slices.Clone(fixed)
	for _, e := range stored {
		if err := r.checkFree(all, e.Name); err != nil {
			if !r.wasLeftOut(records[e.Name], before) {
				r.opt.Logger.Warn("a registered swarm is left out", "swarm", e.Name, "why", err)
			}
			delete(tokens, e.Name)
			continue
		}
		all = append(all, e)
	}
	others := slices.DeleteFunc(before, func(e Entry) bool { return e.Fixed || !e.Volatile || indexOf(all, e.Name) >= 0 })
	r.setEntries(r.addFree(all, others), tokens)
}

// wasLeftOut reports whether a record that has not changed since is among none of the entries.
func (r *Registry) wasLeftOut(one Record, before []Entry) bool {
	i := indexOf(before, one.Name)
	return bytes.Equal(r.records[one.Name].Revision, one.Revision) && (i < 0 || before[i].Fixed)
}

// readRecords decodes records, in the order of their registration, with their tokens. One that has not changed keeps
// what this host has learnt of the swarm. The caller holds saving.
func (r *Registry) readRecords(records map[string]Record, before []Entry) (stored []Entry, tokens map[string]string) {
	tokens = map[string]string{}
	for name, one := range records {
		same := bytes.Equal(r.records[name].Revision, one.Revision)
		c, err := one.read()
		if err != nil {
			if !same {
				r.opt.Logger.Error("a registered swarm cannot be read and is left out: register it again, or remove it", "swarm", name, "err", err)
			}
			continue
		}
		if i := indexOf(before, name); same && i >= 0 && !before[i].Fixed {
			c.copyState(before[i])
		}
		stored = append(stored, c.Entry)
		if c.Token != "" {
			tokens[name] = c.Token
		}
	}
	slices.SortFunc(stored, func(a, b Entry) int {
		return cmp.Or(a.Registered.Compare(b.Registered), cmp.Compare(a.Name, b.Name))
	})
	return stored, tokens
}

// addFree adds entries whose names are free.
func (r *Registry) addFree(all, others []Entry) []Entry {
	for _, e := range others {
		if err := r.checkFree(all, e.Name); err != nil {
			r.opt.Logger.Warn("a registered swarm is left out", "swarm", e.Name, "why", err)
			continue
		}
		all = append(all, e)
	}
	return all
}

// setEntries replaces the entries, and the tokens of all but volatile ones. The caller holds saving.
func (r *Registry) setEntries(all []Entry, tokens map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range all {
		if token := r.tokens[e.Name]; e.Volatile && token != "" {
			tokens[e.Name] = token
		}
	}
	r.entries, r.tokens = all, tokens
	r.schedule.wake()
}

// readTimeout bounds a read of the store that waits for no caller.
const readTimeout = 10 * time.Second

// swap makes a change of one entry last in the store: nil removes it. ok is false if another host has changed it
// meanwhile. The caller holds changing.
func (r *Registry) swap(ctx context.Context, name string, e *Entry, token string) (ok bool, err error) {
	var text []byte
	if e != nil {
		if text, err = json.Marshal(recordContent{*e, token}); err != nil {
			return false, err
		}
	}
	old := r.records[name]
	old.Name = name
	stored, ok, err := r.opt.Store.SwapSwarm(ctx, old, text)
	if err != nil { // it may have happened, and the caller may have left
		again, stop := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer stop()
		_ = r.readStore(again)
		return false, err
	}
	r.saving.Lock()
	defer r.saving.Unlock()
	switch {
	case ok && e == nil:
		delete(r.records, name)
	case ok:
		r.records[name] = stored
	}
	return ok, nil
}

// FileOf returns the text of the file that has the entries of records, as a host without a store keeps it. It has no
// tokens. Records that are damaged are left out, and are the error.
func FileOf(list []Record) (text []byte, damaged error) {
	var entries []Entry
	for _, one := range list {
		c, err := one.read()
		if err != nil {
			damaged = errors.Join(damaged, fmt.Errorf("the registered swarm %s: %w", one.Name, err))
			continue
		}
		entries = append(entries, c.Entry)
	}
	text, err := fileText(entries)
	return text, errors.Join(damaged, err)
}

// RecordsOf returns the texts of the records with the entries of a file, by name. Without a file there are none.
func RecordsOf(path string) (map[string][]byte, error) {
	entries, err := readFile(path)
	all := map[string][]byte{}
	for _, e := range entries {
		if all[e.Name], err = json.Marshal(recordContent{Entry: e}); err != nil {
			break
		}
	}
	return all, err
}

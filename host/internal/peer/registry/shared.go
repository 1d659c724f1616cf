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
	// changed, where another record than was is kept by now; a was without a revision is none. It is
	// durable on return. After an error it may have happened.
	SwapSwarm(ctx context.Context, was Record, text []byte) (is Record, ok bool, err error)
}

// Record is an entry as a [Store] keeps it.
type Record struct {
	Name string
	Text []byte
	// Damaged is why the text cannot be read, nil if it can.
	Damaged error
	// Revision is another one after each change.
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

// Refresh reads the lasting entries again, which other hosts may have changed.
func (r *Registry) Refresh(ctx context.Context) error {
	if r.opt.Store == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, readTimeout)
	defer stop()
	r.saving.Lock()
	defer r.saving.Unlock()
	return r.readStore(ctx)
}

// readStore replaces the registry's entries by the store's. An entry that has not changed keeps what this host has
// learnt of the swarm. The caller holds saving.
func (r *Registry) readStore(ctx context.Context) error {
	if r.opt.Store == nil {
		return nil
	}
	list, err := r.opt.Store.Swarms(ctx)
	if err != nil {
		return fmt.Errorf("read the registered swarms: %w", err)
	}
	before, kept, tokens := r.Entries(), map[string]Record{}, map[string]string{}
	all := slices.DeleteFunc(slices.Clone(before), func(e Entry) bool { return !e.Fixed })
	var stored []Entry
	for _, one := range list {
		kept[one.Name] = one
		same := bytes.Equal(r.kept[one.Name].Revision, one.Revision)
		c, err := one.read()
		if err != nil {
			if !same {
				r.opt.Logger.Error("a registered swarm cannot be read and is left out: register it again, or remove it", "swarm", one.Name, "err", err)
			}
			continue
		}
		if i := indexOf(before, one.Name); same && i >= 0 && !before[i].Fixed {
			c.copyState(before[i])
		}
		stored = append(stored, c.Entry)
		if c.Token != "" {
			tokens[one.Name] = c.Token
		}
	}
	slices.SortFunc(stored, func(a, b Entry) int {
		return cmp.Or(a.Registered.Compare(b.Registered), cmp.Compare(a.Name, b.Name))
	})
	all = r.addFree(all, stored)
	// A swarm that was registered for a while gives way to one that lasts.
	for _, e := range before {
		if e.Volatile && !e.Fixed && indexOf(all, e.Name) < 0 {
			all = append(all, e)
		}
	}
	r.kept = kept
	r.setEntries(all, tokens)
	return nil
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
// meanwhile. The caller holds saving.
func (r *Registry) swap(ctx context.Context, name string, is *Entry, token string) (ok bool, err error) {
	var text []byte
	if is != nil {
		if text, err = json.Marshal(recordContent{*is, token}); err != nil {
			return false, err
		}
	}
	was := r.kept[name]
	was.Name = name
	now, ok, err := r.opt.Store.SwapSwarm(ctx, was, text)
	switch {
	case err != nil: // it may have happened, and the caller may have left
		again, stop := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer stop()
		_ = r.readStore(again)
		return false, err
	case ok && is == nil:
		delete(r.kept, name)
	case ok:
		r.kept[name] = now
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

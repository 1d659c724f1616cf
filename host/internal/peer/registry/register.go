package registry

import (
	"context"
	"errors"
	"slices"

	"skep/host/internal/swarm"
)

// Register adds or replaces a swarm. It queries the description for at most 10 s,
// and registers the swarm without an answer too. A lasting entry is
// durable on return. The caller's errors are *swarm.Refusal.
func (r *Registry) Register(ctx context.Context, q Request) (Entry, error) {
	if err := q.check(); err != nil {
		return Entry{}, err
	}
	begun := r.opt.Now()
	ref, literal := q.tokens()
	e := Entry{
		Name: q.Name, BaseURL: q.BaseURL, TokenRef: ref, Keywords: []string{}, Metadata: q.Metadata,
		Volatile: q.Volatile, Registered: begun.UTC(),
	}
	if err := r.checkReplace(r.Entries(), e, q.Operator); err != nil {
		return Entry{}, err
	}
	s, err := r.describe(ctx, q.Name, q.BaseURL)
	var refused *swarm.Refusal
	switch {
	case errors.As(err, &refused):
		return Entry{}, err
	case ctx.Err() != nil:
		return Entry{}, context.Cause(ctx)
	case err != nil:
		r.opt.Logger.Warn("a registered swarm does not say what it is", "swarm", q.Name, "why", errorText(err))
		e.markInactive(err, r.opt.Now())
	default:
		e.markActive(begun, r.opt.Now())
		e.setDescription(s)
	}
	if err := r.put(ctx, e, literal, q.Operator); err != nil {
		return e, err
	}
	r.schedule.learnt(e.Name, e.Active)
	return e, nil
}

// put adds or replaces an entry. Nothing changes when it cannot be stored.
func (r *Registry) put(ctx context.Context, e Entry, literal string, operator bool) error {
	defer r.beginChange()()
	for {
		if err := r.readStore(ctx); err != nil {
			return err
		}
		if ok, err := r.putOnce(ctx, e, literal, operator); ok || err != nil {
			return err
		}
	}
}

// putOnce returns ok false if another host has changed the entry meanwhile. It is called within a change.
func (r *Registry) putOnce(ctx context.Context, e Entry, literal string, operator bool) (ok bool, err error) {
	entries, keep := r.Entries(), !e.Volatile
	if err := r.checkReplace(entries, e, operator); err != nil {
		return false, err
	}
	i := indexOf(entries, e.Name)
	switch {
	case i >= 0:
		keep = keep || !entries[i].Volatile
		e.Registered = entries[i].Registered
	case len(entries)-countDiscovered(entries) >= maxEntries:
		return false, refuse(swarm.ErrLimit, "this host knows %d swarms already", len(entries)-countDiscovered(entries))
	}
	return r.save(ctx, keep, e.Name, &e, literal)
}

// save replaces the entry of a name, or removes it with nil. keep is whether to write the file, or the entry into the
// store; token is its literal token. ok is false if another host has changed it meanwhile. It is called within a change.
func (r *Registry) save(ctx context.Context, keep bool, name string, e *Entry, token string) (ok bool, err error) {
	if r.opt.Store == nil {
		return true, r.saveFile(keep, name, e, token)
	}
	if keep {
		stored := e
		if e != nil && e.Volatile {
			stored = nil
		}
		if ok, err := r.swap(ctx, name, stored, token); !ok || err != nil {
			return false, err
		}
	}
	r.saving.Lock()
	defer r.saving.Unlock()
	r.setEntry(r.withEntry(name, e), name, token)
	return true, nil
}

// saveFile is save of a host with a file. The caller holds saving.
func (r *Registry) saveFile(keep bool, name string, e *Entry, token string) error {
	entries := r.withEntry(name, e)
	if keep {
		if err := writeFile(r.opt.Path, entries); err != nil {
			return err
		}
		r.unsaved = saved
	}
	r.setEntry(entries, name, token)
	return nil
}

// withEntry returns the entries with the one of a name replaced, or removed with nil. One that the operator's file has
// taken meanwhile stays.
func (r *Registry) withEntry(name string, e *Entry) []Entry {
	entries := r.Entries()
	switch i := indexOf(entries, name); {
	case i >= 0 && entries[i].Fixed, i < 0 && e == nil:
	case e == nil:
		entries = slices.Delete(entries, i, i+1)
	case i < 0:
		entries = append(entries, *e)
	default:
		entries[i] = *e
	}
	return entries
}

// setEntry replaces the entries, and the token of one. The caller holds saving.
func (r *Registry) setEntry(entries []Entry, name, token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = entries
	delete(r.tokens, name)
	if i := indexOf(entries, name); token != "" && i >= 0 && !entries[i].Fixed {
		r.tokens[name] = token
	}
}

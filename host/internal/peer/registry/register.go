package registry

import (
	"context"
	"errors"

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
	r.saving.Lock()
	defer r.saving.Unlock()
	for {
		if err := r.readStore(ctx); err != nil {
			return err
		}
		if ok, err := r.putOnce(ctx, e, literal, operator); ok || err != nil {
			return err
		}
	}
}

// putOnce returns ok false if another host has changed the entry meanwhile. The caller holds saving.
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
		entries[i] = e
	case len(entries)-countDiscovered(entries) >= maxEntries:
		return false, refuse(swarm.ErrLimit, "this host knows %d swarms already", len(entries)-countDiscovered(entries))
	default:
		entries = append(entries, e)
	}
	return r.save(ctx, entries, keep, e.Name, literal)
}

// save replaces the entries. keep is whether to write the file, or the entry of a name in the store; token is its
// literal token. ok is false if another host has changed it meanwhile.
func (r *Registry) save(ctx context.Context, entries []Entry, keep bool, name, token string) (ok bool, err error) {
	switch {
	case !keep:
	case r.opt.Store != nil:
		var stored *Entry
		if i := indexOf(entries, name); i >= 0 && !entries[i].Volatile {
			stored = &entries[i]
		}
		if ok, err := r.swap(ctx, name, stored, token); !ok || err != nil {
			return false, err
		}
	default:
		if err := writeFile(r.opt.Path, entries); err != nil {
			return false, err
		}
		r.unsaved = saved
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = entries
	delete(r.tokens, name)
	if token != "" {
		r.tokens[name] = token
	}
	return true, nil
}

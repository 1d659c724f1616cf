package registry

import (
	"context"
	"errors"

	"skep/host/internal/swarm"
)

// Register adds a swarm or replaces what was registered under its name. It asks
// the swarm what it is, for at most 10 s, and takes it also when there is no
// answer. An entry that lasts is durable on return. Errors that are the
// caller's are *swarm.Refusal.
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
	if err := r.takes(r.Entries(), e, q.Operator); err != nil {
		return Entry{}, err
	}
	s, err := r.look(ctx, q.Name, q.BaseURL)
	var refused *swarm.Refusal
	switch {
	case errors.As(err, &refused):
		return Entry{}, err
	case ctx.Err() != nil:
		return Entry{}, context.Cause(ctx)
	case err != nil:
		r.opt.Logger.Warn("a registered swarm does not say what it is", "swarm", q.Name, "why", trouble(err))
		e.silent(err, r.opt.Now())
	default:
		e.heard(begun, r.opt.Now())
		e.described(s)
	}
	if err := r.put(e, literal, q.Operator); err != nil {
		return e, err
	}
	r.due.learnt(e.Name, e.Active)
	return e, nil
}

// put makes an entry known, in the place of an older one of its name. Nothing
// changes when it cannot be kept.
func (r *Registry) put(e Entry, literal string, operator bool) error {
	r.saving.Lock()
	defer r.saving.Unlock()
	entries, keep := r.Entries(), !e.Volatile
	if err := r.takes(entries, e, operator); err != nil {
		return err
	}
	i := indexOf(entries, e.Name)
	switch {
	case i >= 0:
		keep = keep || !entries[i].Volatile
		e.Registered = entries[i].Registered
		entries[i] = e
	case len(entries)-found(entries) >= maxEntries:
		return refuse(swarm.ErrLimit, "this host knows %d swarms already", len(entries)-found(entries))
	default:
		entries = append(entries, e)
	}
	return r.save(entries, keep, e.Name, literal)
}

// save puts entries in the place of those that are known. Keep is whether the
// file changes; token is that of the one that has changed.
func (r *Registry) save(entries []Entry, keep bool, name, token string) error {
	if keep {
		if err := writeFile(r.opt.Path, entries); err != nil {
			return err
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
	return nil
}

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
	if err := r.put(e, literal, q.Operator); err != nil {
		return e, err
	}
	r.schedule.learnt(e.Name, e.Active)
	return e, nil
}

// put adds or replaces an entry. Nothing changes when it cannot be stored.
func (r *Registry) put(e Entry, literal string, operator bool) error {
	r.saving.Lock()
	defer r.saving.Unlock()
	entries, keep := r.Entries(), !e.Volatile
	if err := r.checkReplace(entries, e, operator); err != nil {
		return err
	}
	i := indexOf(entries, e.Name)
	switch {
	case i >= 0:
		keep = keep || !entries[i].Volatile
		e.Registered = entries[i].Registered
		entries[i] = e
	case len(entries)-countDiscovered(entries) >= maxEntries:
		return refuse(swarm.ErrLimit, "this host knows %d swarms already", len(entries)-countDiscovered(entries))
	default:
		entries = append(entries, e)
	}
	return r.save(entries, keep, e.Name, literal)
}

// save replaces the entries. keep is whether to write the file; token is the
// literal token of the changed entry.
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

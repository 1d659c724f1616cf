package registry

import (
	"context"
	"fmt"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// checkFree refuses a name that cannot be registered beside entries. Two names
// with one variable would share its token; a discovered swarm has no token.
func (r *Registry) checkFree(entries []Entry, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if name == r.opt.Local {
		return invalid("'%s' is the swarm of this host", name)
	}
	if mail.SwarmNamesCollide(name, r.opt.Local) {
		return nameCollision(name, r.opt.Local)
	}
	for _, e := range entries {
		switch {
		case e.Fixed && e.Name == name:
			return refuse(swarm.ErrConflict, "swarm '%s' stands in swarm.toml; change [peers.%s] there", name, name)
		case e.Name != name && !e.Discovered && mail.SwarmNamesCollide(e.Name, name):
			return nameCollision(name, e.Name)
		}
	}
	if r.opt.IsPartner != nil && r.opt.IsPartner(name) {
		return refuse(swarm.ErrConflict, "swarm '%s' is a partner of a gateway in swarm.toml; choose another name", name)
	}
	return nil
}

// checkReplace refuses an entry that cannot be registered.
func (r *Registry) checkReplace(entries []Entry, e Entry, operator bool) error {
	if err := r.checkFree(entries, e.Name); err != nil {
		return err
	}
	for _, old := range entries {
		if old.Name == e.Name && old.tokenInVariable() && !operator && (e.TokenRef != old.TokenRef || e.BaseURL != old.BaseURL) {
			return old.tokenBound()
		}
	}
	return nil
}

func nameCollision(name, known string) error {
	return refuse(swarm.ErrConflict, "swarm '%s' would have the token of '%s', ${%s}; choose a name that differs in more than case and punctuation",
		name, known, TokenVariable(name))
}

// tokenInVariable reports whether a variable holds the entry's token. It was set
// for the registered address.
func (e *Entry) tokenInVariable() bool { return e.TokenRef != "" && !e.Fixed }

func (e *Entry) tokenBound() error {
	return refuse(swarm.ErrConflict, "the token of swarm '%s' stands in %s for %s; only an operator moves it, takes its token away or removes it",
		e.Name, e.TokenRef, e.BaseURL)
}

// Remove removes a registered swarm; that is durable on return. Only the operator
// may remove one whose token is in a variable. The caller's errors are
// *swarm.Refusal.
func (r *Registry) Remove(ctx context.Context, name string, operator bool) (Entry, error) {
	defer r.beginChange()()
	for {
		if err := r.readStore(ctx); err != nil {
			return Entry{}, err
		}
		if gone, ok, err := r.removeOnce(ctx, name, operator); ok || err != nil {
			return gone, err
		}
	}
}

// removeOnce returns ok false if another host has changed the entry meanwhile. It is called within a change.
func (r *Registry) removeOnce(ctx context.Context, name string, operator bool) (gone Entry, ok bool, err error) {
	entries := r.Entries()
	i := indexOf(entries, name)
	switch {
	case i < 0 && r.records[name].Revision != nil && operator: // one that cannot be read
		ok, err := r.swap(ctx, name, nil, "")
		return Entry{Name: name}, ok, err
	case i < 0:
		return Entry{}, false, refuse(swarm.ErrNotFound, "swarm '%s' is not registered", truncate(name))
	case entries[i].Fixed:
		return Entry{}, false, refuse(swarm.ErrConflict, "swarm '%s' stands in swarm.toml; remove [peers.%s] there", name, name)
	case entries[i].tokenInVariable() && !operator:
		return Entry{}, false, entries[i].tokenBound()
	}
	gone = entries[i]
	ok, err = r.save(ctx, !gone.Volatile, name, nil, "")
	return gone, ok, err
}

// truncate bounds how much of an unchecked name is shown.
func truncate(name string) string { return fmt.Sprintf("%.64s", name) }

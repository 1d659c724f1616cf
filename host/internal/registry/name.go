package registry

import (
	"fmt"
	"slices"

	"skep/host/internal/swarm"
)

// free refuses a name that is not to be registered beside entries. Two names
// that share a variable would share the token in it; a discovered swarm has none.
func (r *Registry) free(entries []Entry, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if name == r.opt.Local {
		return invalid("'%s' is the swarm of this host", name)
	}
	if Alike(name, r.opt.Local) {
		return alike(name, r.opt.Local)
	}
	for _, e := range entries {
		switch {
		case e.Fixed && e.Name == name:
			return refuse(swarm.ErrConflict, "swarm '%s' stands in swarm.toml; change [peers.%s] there", name, name)
		case e.Name != name && !e.Found && Alike(e.Name, name):
			return alike(name, e.Name)
		}
	}
	return nil
}

// takes refuses an entry that is not to be put among entries.
func (r *Registry) takes(entries []Entry, e Entry, operator bool) error {
	if err := r.free(entries, e.Name); err != nil {
		return err
	}
	for _, old := range entries {
		if old.Name == e.Name && old.bound() && !operator && (e.TokenRef != old.TokenRef || e.BaseURL != old.BaseURL) {
			return old.held()
		}
	}
	return nil
}

// Alike reports whether two names are one, or differ in case and punctuation only:
// no two such swarms are registered.
func Alike(a, b string) bool { return TokenVariable(a) == TokenVariable(b) }

func alike(name, known string) error {
	return refuse(swarm.ErrConflict, "swarm '%s' would have the token of '%s', ${%s}; choose a name that differs in more than case and punctuation",
		name, known, TokenVariable(name))
}

// bound reports whether a token stands in a variable for an entry. Whoever set
// the variable meant it for the address that was registered.
func (e *Entry) bound() bool { return e.TokenRef != "" && !e.Fixed }

func (e *Entry) held() error {
	return refuse(swarm.ErrConflict, "the token of swarm '%s' stands in %s for %s; only an operator moves it, takes its token away or removes it",
		e.Name, e.TokenRef, e.BaseURL)
}

// Remove forgets a swarm that was registered; that is durable on return. Only
// the operator may remove one whose token stands in a variable. Errors that are
// the caller's are *swarm.Refusal.
func (r *Registry) Remove(name string, operator bool) (Entry, error) {
	r.saving.Lock()
	defer r.saving.Unlock()
	entries := r.Entries()
	i := indexOf(entries, name)
	switch {
	case i < 0:
		return Entry{}, refuse(swarm.ErrNotFound, "swarm '%s' is not registered", shown(name))
	case entries[i].Fixed:
		return Entry{}, refuse(swarm.ErrConflict, "swarm '%s' stands in swarm.toml; remove [peers.%s] there", name, name)
	case entries[i].bound() && !operator:
		return Entry{}, entries[i].held()
	}
	gone := entries[i]
	return gone, r.save(slices.Delete(entries, i, i+1), !gone.Volatile, name, "")
}

// shown bounds what a text repeats of a name that nobody checked.
func shown(name string) string { return fmt.Sprintf("%.64s", name) }

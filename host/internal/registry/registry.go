package registry

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"skep/host/internal/egress"
	"skep/host/internal/swarm"
)

// maxEntries bounds the swarms that are known, those of the file included.
const maxEntries = 1000

// Options of [Open].
type Options struct {
	// Path is the file of the entries that last; required.
	Path string
	// Local is the name of the swarm of this host, which nobody registers.
	Local  string
	Static []Static
	// Private lets swarms be at private and loopback addresses, as they may
	// be for a host that itself listens on loopback only.
	Private bool
	// Egress changes how swarms are asked about themselves.
	Egress egress.Options
	Logger *slog.Logger
	Now    func() time.Time
}

// Registry is the swarms that a host knows. Make one with [Open]; it needs no
// close.
type Registry struct {
	opt    Options
	client *egress.Client

	// saving is held from a change to its end on disk. It comes before mu.
	saving sync.Mutex

	mu      sync.Mutex
	entries []Entry
	// tokens are those that must not be written, by swarm.
	tokens map[string]string
}

// Open reads the file, if there is one. Entries under names that are not free by
// now, as those of the operator's file, are left out.
func Open(opt Options) (*Registry, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Registry{opt: opt, client: newClient(opt.Egress), tokens: map[string]string{}}
	for _, s := range opt.Static {
		r.entries = append(r.entries, s.entry())
	}
	kept, err := readFile(opt.Path)
	if err != nil {
		return nil, err
	}
	for _, e := range kept {
		if err := r.free(r.entries, e.Name); err != nil {
			opt.Logger.Warn("a registered swarm is left out", "swarm", e.Name, "why", err)
			continue
		}
		r.entries = append(r.entries, e)
	}
	return r, nil
}

// Entries lists what is known, the operator's file first, then in the order of
// registration. The caller may keep it and must not change what it points to.
func (r *Registry) Entries() []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.entries)
}

// Token returns what calls to a swarm show: the token itself where it is kept
// in memory, else where it is found. Both are empty when there is none.
func (r *Registry) Token(name string) (token, ref string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.entries {
		if e.Name == name {
			ref = e.TokenRef
		}
	}
	return r.tokens[name], ref
}

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
		r.opt.Logger.Warn("a registered swarm does not say what it is", "swarm", q.Name, "err", err)
	default:
		e.seen(s, begun, r.opt.Now())
	}
	return e, r.put(e, literal, q.Operator)
}

// seen takes over what a swarm said of itself.
func (e *Entry) seen(s said, begun, now time.Time) {
	latency := now.Sub(begun).Seconds()
	e.Version, e.Description, e.Public = s.Version, s.Swarm.Description, s.Swarm.Public
	e.Keywords = append(e.Keywords, s.Swarm.Keywords...)
	e.Active, e.Latency, e.LastSeen = true, &latency, now.UTC()
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
	i := slices.IndexFunc(entries, func(old Entry) bool { return old.Name == e.Name })
	switch {
	case i >= 0:
		keep = keep || !entries[i].Volatile
		e.Registered = entries[i].Registered
		entries[i] = e
	case len(entries) >= maxEntries:
		return refuse(swarm.ErrLimit, "this host knows %d swarms already", len(entries))
	default:
		entries = append(entries, e)
	}
	return r.save(entries, keep, e.Name, literal)
}

// save puts entries in the place of those that are known. Keep is whether the
// file changes; token is that of the one that has changed.
func (r *Registry) save(entries []Entry, keep bool, name, token string) error {
	if keep {
		if err := writeFile(r.opt.Path, entries[len(r.opt.Static):]); err != nil {
			return err
		}
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

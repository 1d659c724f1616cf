package registry

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"skep/host/internal/turn/egress"
)

// maxEntries bounds the known swarms, including the operator's and excluding
// discovered ones.
const maxEntries = 1000

// Options of [Open].
type Options struct {
	// Path is the file of lasting entries; required.
	Path string
	// Store has the lasting entries instead, where hosts share one. The entries in the file are carried over.
	Store Store
	// Local is the name of this host's swarm, which cannot be registered.
	Local  string
	Static []Static
	// IsPartner, if set, reports the names of swarms that gateways serve, which cannot be
	// registered either.
	IsPartner func(name string) bool
	// AllowPrivate allows private and loopback addresses, as for a host that
	// itself listens on loopback only.
	AllowPrivate bool
	// HealthInterval is the interval of health checks; 0 means none.
	HealthInterval time.Duration
	// OnUp, if set, is called after each good health check with the swarm's name.
	OnUp func(name string)
	// OnStart, if set, is called when a swarm that keeps its tasks in memory is seen
	// for the first time, and when it was started again, with the time of its start. It
	// is called again after an error.
	OnStart func(ctx context.Context, name string, at time.Time) error
	// Egress configures the HTTP client.
	Egress egress.Options
	Logger *slog.Logger
	Now    func() time.Time
}

// Registry holds the swarms that a host knows. Make one with [Open]; it needs no
// close.
type Registry struct {
	opt      Options
	client   *egress.Client
	schedule *schedule
	counts   healthCounts

	// changing is held during a change until it lasts. It comes before saving.
	changing sync.Mutex
	// saving is held while the file is written, or entries are replaced. It comes before mu.
	saving sync.Mutex
	// unsaved is what the file lacks; guarded by saving.
	unsaved unsaved
	// records are the store's, by name, as this host has read them last. Who holds changing or saving may read them, who holds both may change them.
	records map[string]Record

	mu      sync.Mutex
	entries []Entry
	// tokens are literal tokens by swarm, which are never written.
	tokens map[string]string
	// starts is when swarms that keep their tasks in memory were started.
	starts map[string]time.Time
}

// Open reads the store, or the file, if it exists. It skips entries whose names are no longer
// free, such as names in the operator's file.
func Open(ctx context.Context, opt Options) (*Registry, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Registry{opt: opt, client: newClient(opt.Egress), schedule: newSchedule(opt.HealthInterval), tokens: map[string]string{}, starts: map[string]time.Time{}}
	if opt.Store != nil {
		r.entries = r.mergeStatic(opt.Static, nil, nil)
		if err := r.carryOver(ctx); err != nil {
			return nil, err
		}
		return r, r.Refresh(ctx)
	}
	kept, err := readFile(opt.Path)
	if err != nil {
		return nil, err
	}
	r.entries = r.mergeStatic(opt.Static, nil, kept)
	return r, nil
}

// mergeStatic puts the operator's entries before others, and skips those whose
// names are no longer free. An operator's entry keeps its state if its address is
// the same.
func (r *Registry) mergeStatic(static []Static, before, others []Entry) (all []Entry) {
	for _, s := range static {
		e := s.entry()
		if i := indexOf(before, s.Name); i >= 0 && before[i].BaseURL == s.BaseURL {
			e.copyState(before[i])
		}
		all = append(all, e)
	}
	return r.addFree(all, others)
}

// SetStatic replaces the operator's entries. It takes effect at once. A swarm
// that stays at its address keeps its state. A registered swarm gives way to one
// of its name in the file.
func (r *Registry) SetStatic(static []Static) {
	r.saving.Lock()
	defer r.saving.Unlock()
	before := r.Entries()
	fixed := r.mergeStatic(static, before, nil)
	for _, e := range fixed {
		if e.Since.IsZero() {
			r.schedule.reset(e.Name)
		}
	}
	if r.opt.Store != nil {
		r.setRecords(fixed, r.records) // one that the file shadowed before is there again
		return
	}
	others := slices.DeleteFunc(before, func(e Entry) bool { return e.Fixed })
	all, tokens := r.addFree(fixed, others), map[string]string{}
	for _, e := range all[len(fixed):] {
		if token, _ := r.Token(e.Name); token != "" {
			tokens[e.Name] = token
		}
	}
	r.setEntries(all, tokens)
}

// Entries lists the known swarms, the operator's first, then in the order of
// registration. The caller owns the list and must not change what it points to.
func (r *Registry) Entries() []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.entries)
}

// Entry returns one known swarm.
func (r *Registry) Entry(name string) (e Entry, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := indexOf(r.entries, name); i >= 0 {
		return r.entries[i], true
	}
	return e, false
}

// Token returns the token for calls to a swarm: its literal value if it is in
// memory, and its reference. Both are empty when there is none.
func (r *Registry) Token(name string) (token, ref string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := indexOf(r.entries, name); i >= 0 {
		ref = r.entries[i].TokenRef
	}
	return r.tokens[name], ref
}

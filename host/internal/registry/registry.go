package registry

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"skep/host/internal/egress"
)

// maxEntries bounds the swarms that are known, those of the file included and
// discovered ones not.
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
	// Health is how often [Registry.Run] asks each swarm whether it is well; 0
	// is never.
	Health time.Duration
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
	due    *schedule
	counts counts

	// saving is held from a change to its end on disk. It comes before mu.
	saving sync.Mutex
	// unsaved is what the file does not have yet; guarded by saving.
	unsaved unsaved

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
	r := &Registry{opt: opt, client: newClient(opt.Egress), due: newSchedule(opt.Health), tokens: map[string]string{}}
	kept, err := readFile(opt.Path)
	if err != nil {
		return nil, err
	}
	r.entries = r.join(opt.Static, nil, kept)
	return r, nil
}

// join puts the operator's entries before others, which are left out where their
// name is not free by now. What is known of the operator's at the same address
// stays.
func (r *Registry) join(static []Static, before, others []Entry) (all []Entry) {
	for _, s := range static {
		e := s.entry()
		if i := indexOf(before, s.Name); i >= 0 && before[i].BaseURL == s.BaseURL {
			e.recall(before[i])
		}
		all = append(all, e)
	}
	for _, e := range others {
		if err := r.free(all, e.Name); err != nil {
			r.opt.Logger.Warn("a registered swarm is left out", "swarm", e.Name, "why", err)
			continue
		}
		all = append(all, e)
	}
	return all
}

// SetStatic puts what the operator's file says now in the place of what it said.
// It takes hold at once; what is known of a swarm that stays at its address
// stays. A registered swarm gives way to one of its name in the file.
func (r *Registry) SetStatic(static []Static) {
	r.saving.Lock()
	defer r.saving.Unlock()
	before := r.Entries()
	others := slices.DeleteFunc(slices.Clone(before), func(e Entry) bool { return e.Fixed })
	all := r.join(static, before, others)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = all
	for _, e := range all {
		if e.Fixed && e.Since.IsZero() {
			r.due.forget(e.Name)
		}
	}
	for name := range r.tokens {
		if i := indexOf(all, name); i < 0 || all[i].Fixed {
			delete(r.tokens, name)
		}
	}
	r.due.wake()
}

// Entries lists what is known, the operator's file first, then in the order of
// registration. The caller may keep it and must not change what it points to.
func (r *Registry) Entries() []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.entries)
}

// Entry returns what is known of one swarm.
func (r *Registry) Entry(name string) (e Entry, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := indexOf(r.entries, name); i >= 0 {
		return r.entries[i], true
	}
	return e, false
}

// Token returns what calls to a swarm show: the token itself where it is kept
// in memory, else where it is found. Both are empty when there is none.
func (r *Registry) Token(name string) (token, ref string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := indexOf(r.entries, name); i >= 0 {
		ref = r.entries[i].TokenRef
	}
	return r.tokens[name], ref
}

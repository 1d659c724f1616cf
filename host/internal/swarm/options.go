package swarm

import (
	"log/slog"
	"runtime"
	"time"
)

// Options of a [Runtime]. Zero values are useful.
type Options struct {
	// Turns bounds the turns that run at once, 64 by default.
	Turns int
	// Tokens bounds the turns that compute at once, GOMAXPROCS by default.
	Tokens int
	// TurnBuffers bounds what running turns hold in memory beyond 1 MiB each, in bytes;
	// 512 MiB by default.
	TurnBuffers int64
	// Tenants are the weights and quotas of tenants; nil for none.
	Tenants *TenantSet
	// RunSet keeps the turns that may have killed the last host, Quarantine the agents
	// that must not run. Both may be nil.
	RunSet     RunSet
	Quarantine Quarantine
	// KnownSwarms are the other swarms that the host knows; nil for none.
	KnownSwarms KnownSwarms
	// Library finds the definitions of unfinished tasks of an earlier host; without it
	// they go on with the current ones.
	Library Library
	// LogWords puts what agents log into the host's log too, instead of its size alone.
	LogWords bool
	// Observer sees what is committed; nil for none.
	Observer Observer
	// Sample makes traces of tasks, and decides which of those without a caller are kept; nil
	// makes none.
	Sample func(trace [16]byte) bool
	// QuestionNotices puts a message for [QuestionsPeer] into the outbox of each task that begins to
	// wait for people here.
	QuestionNotices bool
	Logger          *slog.Logger
	// Cluster is the hosts that share the store; nil for a host that works on all tasks. Handover
	// is how long turns may go on whose task moves to another of them.
	Cluster  Cluster
	Handover time.Duration
	// Now is the host's clock, which may jump. Monotonic is the clock that the shares of the processor and
	// the wait for a slot are measured by; it does not jump.
	Now, Monotonic func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Turns <= 0 {
		o.Turns = 64
	}
	if o.Tokens <= 0 {
		o.Tokens = runtime.GOMAXPROCS(0)
	}
	if o.TurnBuffers <= 0 {
		o.TurnBuffers = 512 << 20
	}
	if o.Tenants == nil {
		o.Tenants = NewTenantSet(nil)
	}
	if o.KnownSwarms == nil {
		o.KnownSwarms = noKnownSwarms{}
	}
	if o.Observer == nil {
		o.Observer = noObserver{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Monotonic == nil {
		o.Monotonic = time.Now
	}
	return o
}

package swarm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"skep/abi"
	"skep/host/internal/meter"
)

// Options of a [Runtime]. Zero values are useful.
type Options struct {
	// Turns bounds the turns that run at once, 64 by default.
	Turns int
	// Tokens bounds the turns that compute at once, GOMAXPROCS by default.
	Tokens int
	// Tenants says what each is given; one that it does not name has no limits.
	Tenants map[string]Tenant
	// RunSet tells which turns may have killed the last host, Quarantine which
	// agents must not run; without them nothing is told.
	RunSet     RunSet
	Quarantine Quarantine
	// Neighbours are the other swarms that the host knows; without them it knows
	// none.
	Neighbours Neighbours
	// Library finds what unfinished tasks of an earlier host were begun with;
	// without it they go on with what there is now.
	Library Library
	Logger  *slog.Logger
	// Now is the host's clock.
	Now func() time.Time
}

// Runtime runs the tasks of a set of swarms. It is safe for concurrent use.
type Runtime struct {
	store      Store
	exec       Executor
	forward    Forwarder
	neighbours Neighbours
	tools      Toolbook
	book       []abi.Tool
	log        *slog.Logger
	now        func() time.Time
	secret     []byte
	suspects   *suspects
	quarantine Quarantine
	defs       definitions
	quotas     tenants
	meters     *meter.Board

	cpu      *cpu
	schedule *schedule
	alarms   *alarms
	draining atomic.Bool
	started  time.Time
	// life ends when turns must stop; stopped is closed when none runs.
	life    context.Context
	end     context.CancelCauseFunc
	stopped chan struct{}

	mu    sync.Mutex
	tasks map[TaskKey]*live
	// parked are tasks that run and are not in memory, with what they count.
	parked map[TaskKey]load
	// instances are those in memory, idle those of them in which nothing goes
	// on. The census of a swarm is made when somebody asks for it.
	instances map[InstanceKey]*instance
	idle      map[InstanceKey]struct{}
	census    map[swarmKey]*census
	ledgers   map[string]*ledger
	// guests counts the running tasks of other swarms.
	guests map[guests]int
	// days are what tenants spend; only those whose turns call models have one.
	days map[string]*daily
	// going are the tasks that are being pruned until gone is closed.
	going map[TaskKey]bool
	gone  chan struct{}
	// erasing are the tenants that are being erased.
	erasing map[string]erasing
	// damaged are running tasks that cannot be read.
	damaged map[TaskKey]struct{}
}

type swarmKey struct{ tenant, name string }

// New returns a runtime for the swarms given. It reads the store but starts
// nothing; see [Runtime.Run].
func New(ctx context.Context, store Store, exec Executor, forward Forwarder, tools Toolbook, defs []Definition, opt Options) (*Runtime, error) {
	opt = opt.withDefaults()
	secret, err := store.Secret(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the store's secret: %w", err)
	}
	r := &Runtime{
		store: store, exec: exec, forward: forward, neighbours: opt.Neighbours, tools: tools, book: tools.Tools(),
		log: opt.Logger, now: opt.Now, secret: secret,
		suspects: newSuspects(opt.RunSet), quarantine: opt.Quarantine,
		defs:   newDefinitions(opt.Library),
		quotas: opt.Tenants, cpu: newCPU(opt.Tokens, opt.Now, tenants(opt.Tenants).weight),
		schedule: newSchedule(opt.Turns, opt.Tenants), alarms: newAlarms(),
		meters:  meter.New(meter.Limits{Agent: maxAgentSeries, Tenant: maxTenantSeries}),
		started: opt.Now(), stopped: make(chan struct{}),
		tasks: map[TaskKey]*live{}, parked: map[TaskKey]load{}, instances: map[InstanceKey]*instance{}, idle: map[InstanceKey]struct{}{},
		census: map[swarmKey]*census{}, ledgers: map[string]*ledger{}, guests: map[guests]int{}, days: map[string]*daily{},
	}
	r.life, r.end = context.WithCancelCause(context.Background())
	if defs, err = r.equip(defs); err != nil {
		return nil, err
	}
	for i := range defs {
		r.defs.current[defs[i].key()] = &defs[i]
	}
	return r, nil
}

func (o Options) withDefaults() Options {
	if o.Turns <= 0 {
		o.Turns = 64
	}
	if o.Tokens <= 0 {
		o.Tokens = runtime.GOMAXPROCS(0)
	}
	if o.Neighbours == nil {
		o.Neighbours = alone{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// errShutdown is the cause with which turns that outlast the drain are
// stopped; their rows stay in the store.
var errShutdown = errors.New("the host is shutting down")

// Run runs turns until ctx ends, and beside them takes up what an earlier host
// left. It then takes no new turns, gives running ones until grace has passed,
// and returns when none runs any more.
func (r *Runtime) Run(ctx context.Context, grace time.Duration) error {
	defer close(r.stopped)
	defer r.end(errShutdown)
	claimed, err := r.claim(ctx)
	if err != nil && ctx.Err() == nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.life, cancel)()
	var turns, others sync.WaitGroup
	others.Go(func() { r.alarms.run(ctx, r.now, r.ring) })
	others.Go(func() { r.sweep(ctx) })
	others.Go(func() {
		if err := r.recover(ctx, claimed); err != nil && ctx.Err() == nil {
			r.end(err)
		}
	})
	for {
		claim, ok := r.schedule.next(ctx)
		if !ok {
			break
		}
		turns.Go(func() {
			defer r.schedule.done(claim)
			r.take(claim)
		})
	}
	r.draining.Store(true)
	stop := time.AfterFunc(grace, func() { r.end(errShutdown) })
	turns.Wait()
	stop.Stop()
	others.Wait()
	if cause := context.Cause(r.life); !errors.Is(cause, errShutdown) {
		return cause
	}
	return nil
}

// Draining reports whether the runtime has stopped taking posts.
func (r *Runtime) Draining() bool { return r.draining.Load() }

// acquire returns a task in memory, loading it if it must. Every acquire is
// followed by a release.
func (r *Runtime) acquire(ctx context.Context, key TaskKey, def *Definition) (*live, error) {
	t, err := r.hold(ctx, key, def)
	if err != nil {
		return nil, err
	}
	if err := r.load(ctx, t); err != nil {
		r.release(t)
		return nil, err
	}
	return t, nil
}

// acquireNew is acquire for a task whose id was just made: the store cannot have
// it and is not asked.
func (r *Runtime) acquireNew(ctx context.Context, key TaskKey, def *Definition) (*live, error) {
	t, err := r.hold(ctx, key, def)
	if err != nil {
		return nil, err
	}
	t.commit.Lock()
	defer t.commit.Unlock()
	t.loaded = true
	return t, nil
}

// hold returns a task that may not be loaded, and counts a holder.
func (r *Runtime) hold(ctx context.Context, key TaskKey, def *Definition) (*live, error) {
	if err := r.stays(ctx, key); err != nil {
		return nil, err
	}
	t := r.tasks[key]
	if t == nil {
		t = newLive(key, def)
		r.tasks[key] = t
	}
	t.refs, t.taken = t.refs+1, t.taken+1
	r.mu.Unlock()
	return t, nil
}

func (r *Runtime) load(ctx context.Context, t *live) error {
	t.commit.Lock()
	defer t.commit.Unlock()
	if t.loaded {
		return nil
	}
	snap, err := r.store.Load(ctx, t.key)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	var def *Definition
	if err == nil {
		if def, err = r.begunWith(ctx, snap.Task); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loaded = true
	if def != nil {
		t.def = def
		t.adopt(snap)
		r.unpark(t)
	}
	return nil
}

// release lets go of a task. One that nobody holds is forgotten; the store
// has it.
func (r *Runtime) release(t *live) {
	r.mu.Lock()
	defer r.mu.Unlock()
	waits := r.lastSees(t)
	t.refs--
	switch {
	case t.refs == 0:
		r.forgetTask(t)
	case t.refs == 1 && t.held && waits:
		r.parkTask(t)
	}
}

// applied does what follows from a step outside of its task: a running task is
// held in memory, has an alarm, and counts for its instance. The caller holds
// t.commit and has a hold on t.
func (r *Runtime) applied(t *live) {
	t.mu.Lock()
	t.ripen(r.now())
	was, now, wake := t.counted, load{}, t.wake()
	running := t.rec.State == StateRunning
	if running {
		now = load{1, t.pending()}
	}
	t.counted = now
	t.mu.Unlock()

	r.mu.Lock()
	t.refs, t.held = t.refs+now.running-was.running, now.running > 0
	r.carry(t.key.InstanceKey, load{now.running - was.running, now.waiting - was.waiting})
	r.mu.Unlock()
	if !running {
		wake = time.Time{}
	}
	r.alarms.set(t.key, wake)
	r.kick(t)
	r.wakeForwarder(t)
}

// retain holds a task once more for a claim, which outlives the caller's hold.
func (r *Runtime) retain(t *live) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.refs, t.taken = t.refs+1, t.taken+1
}

// kick asks for a turn for every agent that has mail and is not at work.
func (r *Runtime) kick(t *live) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rec.State != StateRunning {
		return
	}
	for agent, q := range t.queue {
		if q.Len() == 0 || t.running[agent] != nil {
			continue
		}
		if !r.mayRun(t, (*q)[0]) {
			continue
		}
		tier := (*q)[0].Tier
		if has, ok := t.queued[agent]; ok && has <= tier {
			continue
		}
		t.queued[agent] = tier
		r.retain(t)
		r.schedule.push(t, agent, tier)
	}
}

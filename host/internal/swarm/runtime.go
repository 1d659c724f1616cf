package swarm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"skep/abi"
	"skep/host/internal/swarm/metrics"
	"skep/host/internal/swarm/scheduler"
	"skep/host/internal/swarm/slot"
)

// Runtime runs the tasks of a set of swarms. It is safe for concurrent use.
type Runtime struct {
	store           Store
	exec            Executor
	forward         Forwarder
	knownSwarms     KnownSwarms
	mailTools       MailTools
	mailToolList    []abi.Tool
	observer        Observer
	traces          *traces
	log             *slog.Logger
	logWords        bool
	questionNotices bool // see [Options].QuestionNotices
	now             func() time.Time
	monotonic       func() time.Time // see [Options]
	secret          []byte
	places          listPlaces
	suspects        *suspectGate
	quarantine      Quarantine
	defs            definitions
	tenants         *TenantSet
	metrics         *metrics.Registry

	share    share
	breakers turnBreakers
	buffers  *turnBuffers
	cpu      *scheduler.CPU
	slots    *scheduler.Slots[claim]
	wakeups  *scheduler.Wakeups[TaskKey]
	draining atomic.Bool
	started  time.Time
	// lifetime ends when turns must stop; stopped is closed when the last has ended.
	lifetime    context.Context
	endLifetime context.CancelCauseFunc
	stopped     chan struct{}

	mu    sync.Mutex
	tasks map[TaskKey]*activeTask
	// outboxHolds are the tasks that only their outbox keeps in memory, oldest first.
	outboxHolds []*activeTask
	// parked is the load of running tasks that are not in memory.
	parked map[TaskKey]load
	// instances are the instances in memory, idle those without load. The instances of
	// a swarm are counted on demand.
	instances      map[InstanceKey]*instance
	idle           map[InstanceKey]struct{}
	instanceCounts map[swarmKey]*instanceCount
	tenantLoads    map[string]*tenantLoad
	// peerTasks counts the tasks of other swarms that run or are being accepted.
	peerTasks map[peerKey]int
	// daySpends are the tenants' model costs of the day; only tenants whose turns call
	// models have one.
	daySpends map[string]*daySpend
	// pruning are the tasks that are being pruned until pruned is closed.
	pruning map[TaskKey]bool
	pruned  chan struct{}
	// erasing are the tenants that are being erased.
	erasing map[string]erasePhase
	// damaged are running tasks that cannot be read.
	damaged map[TaskKey]struct{}
}

type swarmKey struct{ tenant, name string }

// New returns a runtime for the swarms given. It reads the store but starts
// nothing; see [Runtime.Run].
func New(ctx context.Context, store Store, exec Executor, forward Forwarder, tools MailTools, defs []Definition, opt Options) (*Runtime, error) {
	opt = opt.withDefaults()
	secret, err := store.Secret(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the store's secret: %w", err)
	}
	places, err := newListPlaces(secret)
	if err != nil {
		return nil, fmt.Errorf("make the key of places: %w", err)
	}
	r := &Runtime{
		store: store, exec: exec, forward: forward, knownSwarms: opt.KnownSwarms, mailTools: tools, mailToolList: tools.Tools(),
		observer: opt.Observer, traces: newTraces(secret, opt.Sample), questionNotices: opt.QuestionNotices, log: opt.Logger, logWords: opt.LogWords, now: opt.Now, monotonic: opt.Monotonic, secret: secret, places: places,
		suspects: newSuspectGate(opt.RunSet), quarantine: opt.Quarantine,
		share:   share{cluster: opt.Cluster, handover: opt.Handover, slots: map[slot.Slot]bool{}, granting: map[string]*sync.Mutex{}},
		defs:    newDefinitions(opt.Library),
		buffers: newTurnBuffers(opt.TurnBuffers),
		tenants: opt.Tenants, breakers: turnBreakers{by: map[agentKey]*turnBreaker{}}, cpu: scheduler.NewCPU(opt.Tokens, opt.Monotonic, opt.Tenants.weight),
		wakeups: scheduler.NewWakeups[TaskKey](),
		metrics: metrics.New(metrics.Limits{Agent: maxAgentSeries, Tenant: maxTenantSeries}),
		started: opt.Now(), stopped: make(chan struct{}),
		tasks: map[TaskKey]*activeTask{}, parked: map[TaskKey]load{}, instances: map[InstanceKey]*instance{}, idle: map[InstanceKey]struct{}{},
		instanceCounts: map[swarmKey]*instanceCount{}, tenantLoads: map[string]*tenantLoad{}, peerTasks: map[peerKey]int{}, daySpends: map[string]*daySpend{},
	}
	r.slots = scheduler.NewSlots[claim](opt.Turns, r.tenants.slotRules(&r.share))
	r.lifetime, r.endLifetime = context.WithCancelCause(context.Background())
	if defs, err = r.prepareDefinitions(defs); err != nil {
		return nil, err
	}
	for i := range defs {
		r.defs.current[defs[i].key()] = &defs[i]
	}
	return r, nil
}

// errShutdown is the cause that stops turns which outlast the drain; their rows stay in
// the store.
var errShutdown = fmt.Errorf("the host stops: %w", ErrDraining)

// maxWakers bounds the tasks that are woken at once: one that waits for the store keeps no
// other from its time.
const maxWakers = 16

// Run runs turns until ctx ends, and meanwhile recovers the tasks that an earlier host
// left. It then begins no new turns, gives running ones the time grace, and returns
// when all have ended.
func (r *Runtime) Run(ctx context.Context, grace time.Duration) error {
	defer close(r.stopped)
	defer r.endLifetime(errShutdown)
	running, err := r.countRunningTasks(ctx)
	if err != nil && ctx.Err() == nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.lifetime, cancel)()
	var turns, others sync.WaitGroup
	wakers := make(chan struct{}, maxWakers)
	others.Go(func() {
		r.wakeups.Run(ctx, r.now, func(ctx context.Context, key TaskKey) {
			select {
			case wakers <- struct{}{}:
			case <-ctx.Done():
				return
			}
			others.Go(func() {
				defer func() { <-wakers }()
				r.wakeTask(ctx, key)
			})
		})
	})
	others.Go(func() { r.purgeExpired(ctx) })
	others.Go(func() { r.recoverDamaged(ctx) })
	others.Go(func() { r.followHosts(ctx) })
	others.Go(func() {
		if r.share.cluster != nil {
			return // Gained recovers them
		}
		if err := r.recoverTasks(ctx, running); err != nil && ctx.Err() == nil {
			r.endLifetime(err)
		}
	})
	for {
		slot, ok := r.slots.Next(ctx)
		if !ok {
			break
		}
		turns.Go(func() {
			defer slot.Release()
			r.runClaim(slot)
		})
	}
	r.draining.Store(true)
	stop := time.AfterFunc(grace, func() { r.endLifetime(errShutdown) })
	turns.Wait()
	stop.Stop()
	others.Wait()
	if cause := context.Cause(r.lifetime); !errors.Is(cause, errShutdown) {
		return cause
	}
	return nil
}

// Draining reports whether the runtime has stopped taking posts.
func (r *Runtime) Draining() bool { return r.draining.Load() }

// acquireFunc is the type of acquireTask.
type acquireFunc func(context.Context, TaskKey, *Definition) (*activeTask, error)

// acquireTask returns a task in memory, loading it if it must. Every acquireTask is
// followed by a releaseTask.
func (r *Runtime) acquireTask(ctx context.Context, key TaskKey, def *Definition) (*activeTask, error) {
	t, err := r.holdTask(ctx, key, def)
	if err != nil {
		return nil, err
	}
	if err := r.loadTask(ctx, t); err != nil {
		r.releaseTask(t)
		return nil, err
	}
	return t, nil
}

// acquireNewTask is acquireTask for a task whose id was just made: the store cannot
// have it and is not read.
func (r *Runtime) acquireNewTask(ctx context.Context, key TaskKey, def *Definition) (*activeTask, error) {
	t, err := r.holdTask(ctx, key, def)
	if err != nil {
		return nil, err
	}
	t.commit.Lock()
	defer t.commit.Unlock()
	t.loaded = true
	return t, nil
}

// holdTask adds a holder to a task, which need not be loaded.
func (r *Runtime) holdTask(ctx context.Context, key TaskKey, def *Definition) (*activeTask, error) {
	if err := r.lockForTask(ctx, key); err != nil {
		return nil, err
	}
	t := r.tasks[key]
	if t == nil {
		t = newActiveTask(key, def)
		t.traces, t.questionNotices = r.traces, r.questionNotices
		r.tasks[key] = t
	}
	t.holders, t.holdGeneration = t.holders+1, t.holdGeneration+1
	r.mu.Unlock()
	return t, nil
}

func (r *Runtime) loadTask(ctx context.Context, t *activeTask) error {
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
		if def, err = r.loadDefinition(ctx, snap.Task); err != nil {
			return err
		}
	}
	t.mu.Lock()
	t.loaded = true
	damaged := false
	if def != nil {
		t.def = def
		t.fillFromSnapshot(snap)
		damaged = r.unparkTask(t)
	}
	t.mu.Unlock()
	if damaged {
		r.afterCommit(t) // it goes on as after a recovery
	}
	return nil
}

// releaseTask removes a holder. A task without holders leaves memory; the store has it.
func (r *Runtime) releaseTask(t *activeTask) {
	r.mu.Lock()
	defer r.mu.Unlock()
	waits := r.lastHolderMayPark(t)
	t.holders--
	switch {
	case t.holders == 0:
		r.forgetTask(t)
	case t.holders == 1 && t.selfHeld && waits:
		r.parkTask(t)
	}
}

// afterCommit updates everything outside of a task after its mutation: its holders, its
// wakeup, the load of its instance, claims and the forwarder. The caller holds t.commit
// and has a hold on t.
func (r *Runtime) afterCommit(t *activeTask) {
	t.mu.Lock()
	r.countLoad(t, nil)
	wake := t.nextWakeup()
	if t.rec.State != StateRunning {
		wake = time.Time{}
	}
	t.mu.Unlock()
	r.wakeups.Set(t.key, wake)
	r.claimTurns(t)
	r.holdForOutbox(t)
	r.wakeForwarder(t)
}

// countLoad counts the load of a task, and releases the part of the quota of the post that
// made it: a turn that begins later counts the post once. The caller holds t.mu.
func (r *Runtime) countLoad(t *activeTask, part *reservation) {
	t.queueDueRows(r.now())
	was, now := t.counted, load{}
	if t.rec.State == StateRunning {
		now = load{1, t.countPending()}
	}
	t.counted = now
	r.mu.Lock()
	defer r.mu.Unlock()
	t.holders, t.selfHeld = t.holders+now.running-was.running, now.running > 0
	r.addLoad(t.key.InstanceKey, load{now.running - was.running, now.waiting - was.waiting})
	part.releaseLocked()
}

// retainTask adds a holder for a claim, which outlives the caller's hold.
func (r *Runtime) retainTask(t *activeTask) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.holders, t.holdGeneration = t.holders+1, t.holdGeneration+1
}

// claimTurns claims a turn for every agent that has mail and is not running, in the order
// of their names: equal tasks go the same way.
func (r *Runtime) claimTurns(t *activeTask) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rec.State != StateRunning {
		return
	}
	for _, agent := range slices.Sorted(maps.Keys(t.queue)) {
		q := t.queue[agent]
		if q.Len() == 0 || t.running[agent] != nil {
			continue
		}
		if !r.admitRow(t, (*q)[0]) {
			continue
		}
		tier := (*q)[0].Tier
		if has, ok := t.claimedTiers[agent]; ok && has <= tier {
			continue
		}
		t.claimedTiers[agent] = tier
		r.retainTask(t)
		r.slots.Push(t.key.schedulerOwner(), tier, claim{t, agent, r.monotonic()})
	}
}

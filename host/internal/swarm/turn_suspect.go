package swarm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// RunSet keeps the set of turns that were computing when the process died. It is safe
// for concurrent use and never fails.
type RunSet interface {
	// Suspects are the turns that were computing when the process died, with their crash
	// count: the deaths after the first at which they were computing again.
	Suspects() map[TurnID]int
	// Begin adds a waiting turn; the number identifies it in later calls.
	Begin(id TurnID) (number int)
	Computing(number int)
	Waiting(number int)
	// End removes a finished turn, Stop one that the next host runs again. Forget
	// removes a suspect that is not run again.
	End(id TurnID, number int)
	Stop(id TurnID, number int)
	Forget(id TurnID)
}

// Quarantine keeps the agents that must not run. It is safe for concurrent use, and
// durable.
type Quarantine interface {
	// Reason returns why an agent must not run; ok is false for an agent that may.
	Reason(tenant, swarm, agent string) (reason string, ok bool)
	// Confine adds an agent of the definition with a digest.
	Confine(tenant, swarm, agent, definition, why string) error
	// Release removes an agent, and reports whether it was there.
	Release(tenant, swarm, agent string) (ok bool, err error)
}

// maxCrashCount is the crash count at which a suspect is not run again: it was
// computing at four deaths, the first and three more.
const maxCrashCount = 3

// Causes of the [Failure] of a turn that is not run.
const (
	causePoison     = "poison"
	causeQuarantine = "quarantine"
)

// suspectGate has the turns that may have killed a host compute one at a time, beside all
// others. It is a gate before the slots: only the active suspect gets a claim. One that waits
// lets the next one run, which it may be waiting for.
type suspectGate struct {
	set RunSet // nil without a run set

	mu sync.Mutex
	// deaths are the suspects that have not been run, and where hosts share a store the
	// others' as well.
	deaths map[TurnID]Deaths
	// waiting are suspects that are the next row of their agent.
	waiting map[TurnID]suspect
	// seen are rows of recovered tasks. open is set when all tasks are recovered, so
	// that the suspect with the fewest crashes is known.
	seen   map[TurnID]bool
	open   bool
	active *suspect
	// left is closed when there is no active suspect any more.
	left chan struct{}
}

// suspect is a row of a task.
type suspect struct {
	id    TurnID
	task  TaskKey
	agent string
	row   int64
}

func newSuspectGate(set RunSet) *suspectGate {
	gate := &suspectGate{set: set, waiting: map[TurnID]suspect{}, seen: map[TurnID]bool{}, left: make(chan struct{})}
	if set != nil {
		gate.deaths = map[TurnID]Deaths{}
		for id, more := range set.Suspects() {
			gate.deaths[id] = Deaths{Here: more + 1}
		}
	}
	return gate
}

// admitRow reports whether a row may get a turn now. A suspect that may not waits until
// it is the active one. The caller holds t.mu.
func (r *Runtime) admitRow(t *activeTask, row Row) bool {
	gate := r.suspects
	gate.mu.Lock()
	defer gate.mu.Unlock()
	if len(gate.deaths) == 0 {
		return true
	}
	id := r.turnID(t.rec, row.N)
	deaths, ok := gate.deaths[id]
	if !ok || deaths.convict() || gate.active != nil && gate.active.id == id {
		return true
	}
	one := suspect{id, t.key, row.Agent, row.N}
	if gate.open && gate.active == nil {
		gate.active = &one
		return true
	}
	gate.waiting[id] = one
	return false
}

// noteSuspects notes the rows of a recovered task. The caller holds t.mu.
func (r *Runtime) noteSuspects(t *activeTask) {
	gate := r.suspects
	gate.mu.Lock()
	defer gate.mu.Unlock()
	if len(gate.deaths) == 0 || gate.open { // open for a task that comes late
		return
	}
	for _, q := range t.queue {
		for _, row := range *q {
			gate.seen[r.turnID(t.rec, row.N)] = true
		}
	}
}

// openSuspectGate begins to run the suspects that recovery has found, and drops the
// others, which have no row any more.
func (r *Runtime) openSuspectGate() {
	gate := r.suspects
	gate.mu.Lock()
	for id := range gate.deaths {
		// Of hosts that share a store each has its own tasks' rows.
		if _, waits := gate.waiting[id]; !waits && !gate.seen[id] && r.share.cluster == nil {
			gate.set.Forget(id)
			delete(gate.deaths, id)
		}
	}
	if n := len(gate.deaths); n > 0 {
		r.log.Warn("turns were computing when the last host died; they compute one at a time", "turns", n)
	}
	gate.open, gate.seen = true, nil
	gate.mu.Unlock()
	r.runNextSuspect()
}

// runNextSuspect lets the suspect with the fewest crashes run, if none does.
func (r *Runtime) runNextSuspect() {
	for {
		one, ok := r.suspects.activateNext()
		if !ok {
			return
		}
		r.mu.Lock()
		t := r.tasks[one.task]
		if t != nil {
			t.holders++
		}
		r.mu.Unlock()
		if t != nil {
			r.claimTurns(t)
			waits := t.hasSuspect(one)
			r.releaseTask(t)
			if waits {
				return
			}
		}
		r.suspects.deactivate(one.id)
	}
}

// activateNext chooses the active suspect.
func (gate *suspectGate) activateNext() (best suspect, ok bool) {
	gate.mu.Lock()
	defer gate.mu.Unlock()
	if !gate.open || gate.active != nil {
		return suspect{}, false
	}
	for id, one := range gate.waiting {
		if !ok || gate.deaths[id].count() < gate.deaths[best.id].count() || gate.deaths[id].count() == gate.deaths[best.id].count() && one.before(best) {
			best, ok = one, true
		}
	}
	if ok {
		delete(gate.waiting, best.id)
		gate.active = &best
	}
	return best, ok
}

// before orders suspects with equal crash counts, for a stable choice.
func (s suspect) before(o suspect) bool {
	return cmp.Or(strings.Compare(s.task.String(), o.task.String()), cmp.Compare(s.row, o.row)) < 0
}

// deactivate ends the time of the active suspect, if it is this one.
func (gate *suspectGate) deactivate(id TurnID) {
	gate.mu.Lock()
	defer gate.mu.Unlock()
	if gate.active != nil && gate.active.id == id {
		gate.active = nil
		close(gate.left)
		gate.left = make(chan struct{})
	}
}

// enter makes a suspect that has waited the active one again, when there is no other.
func (gate *suspectGate) enter(ctx context.Context, one suspect) error {
	for {
		gate.mu.Lock()
		if gate.active == nil || gate.active.id == one.id {
			gate.active = &one
			gate.mu.Unlock()
			return nil
		}
		left := gate.left
		gate.mu.Unlock()
		select {
		case <-left:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// hasSuspect reports whether a suspect still waits for its turn, or runs.
func (t *activeTask) hasSuspect(one suspect) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rec.State != StateRunning {
		return false
	}
	if rn := t.running[one.agent]; rn != nil && rn.row.N == one.row {
		return true
	}
	q := t.queue[one.agent]
	return q != nil && slices.ContainsFunc(*q, func(row Row) bool { return row.N == one.row })
}

// advanceSuspects is called after a claim. It goes on with the next suspect when the
// active one has ended or cannot run any more.
func (r *Runtime) advanceSuspects(t *activeTask, agent string) {
	gate := r.suspects
	gate.mu.Lock()
	active, idle := gate.active, len(gate.waiting) == 0
	gate.mu.Unlock()
	if active != nil && active.task == t.key && active.agent == agent && !t.hasSuspect(*active) {
		gate.deactivate(active.id)
	} else if active != nil {
		return
	}
	if !idle {
		r.runNextSuspect()
	}
}

// runMark is a turn's entry in the run set; nil marks nothing.
type runMark struct {
	set    RunSet
	number int
	rt     *Runtime
	// suspect is the turn where it is one, else nil.
	suspect *suspect
}

// waitForSuspects waits until no other suspect computes, for a turn that is one.
func (mark *runMark) waitForSuspects(ctx context.Context) error {
	if mark == nil || mark.suspect == nil {
		return nil
	}
	return mark.rt.suspects.enter(ctx, *mark.suspect)
}

// yieldToSuspects lets the next suspect run while this one waits.
func (mark *runMark) yieldToSuspects() {
	if mark != nil && mark.suspect != nil {
		mark.rt.suspects.deactivate(mark.suspect.id)
		mark.rt.runNextSuspect()
	}
}

func (mark *runMark) markComputing() {
	if mark != nil {
		mark.set.Computing(mark.number)
	}
}

func (mark *runMark) markWaiting() {
	if mark != nil {
		mark.set.Waiting(mark.number)
	}
}

// markRunning adds a turn to the run set; over removes it when it is committed, or the
// host stops.
func (r *Runtime) markRunning(t *activeTask, setup *turnSetup) (over func()) {
	gate := r.suspects
	if gate.set == nil {
		return func() {}
	}
	id := r.turnID(setup.rec, setup.run.row.N)
	setup.mark = &runMark{set: gate.set, number: gate.set.Begin(id), rt: r}
	gate.mu.Lock()
	if _, ok := gate.deaths[id]; ok {
		setup.mark.suspect = &suspect{id, t.key, setup.agent.Name, setup.run.row.N}
	}
	gate.mu.Unlock()
	return func() {
		if r.lifetime.Err() != nil || errors.Is(context.Cause(setup.ctx), errMoved) {
			gate.set.Stop(id, setup.mark.number)
			return
		}
		gate.set.End(id, setup.mark.number)
		gate.mu.Lock()
		delete(gate.deaths, id)
		gate.mu.Unlock()
		gate.deactivate(id)
	}
}

// checkBarred returns why a turn is not run at all, nil for one that is.
func (r *Runtime) checkBarred(t *activeTask, setup *turnSetup) *Failure {
	name, key := setup.agent.Name, t.key
	id := r.turnID(setup.rec, setup.run.row.N)
	r.suspects.mu.Lock()
	deaths := r.suspects.deaths[id]
	r.suspects.mu.Unlock()
	if deaths.convict() {
		why := fmt.Sprintf("turn %d of task %s was computing at %v", setup.run.row.N, key.Task, deaths)
		r.quarantineAgent(key, name, setup.run.def.Digest, why)
		return &Failure{Cause: causePoison, Message: why + "; the agent is in quarantine until `" + releaseCommand(key, name) + "`"}
	}
	if r.quarantine == nil {
		return nil
	}
	why, ok := r.quarantine.Reason(key.Tenant, key.Swarm, name)
	if !ok {
		return nil
	}
	return &Failure{Cause: causeQuarantine, Message: "it is in quarantine until `" + releaseCommand(key, name) + "`: " + why}
}

// releaseCommand is the command that releases an agent. An operator's own tenant is the
// default one.
func releaseCommand(key TaskKey, agent string) string {
	if key.Tenant == DefaultTenant {
		return "skep agent release " + agent
	}
	return "skep agent release " + agent + " --tenant " + key.Tenant
}

func (r *Runtime) quarantineAgent(key TaskKey, agent, definition, why string) {
	r.log.Error("an agent is in quarantine", "tenant", key.Tenant, "swarm", key.Swarm, "agent", agent, "why", why)
	if r.quarantine == nil {
		return
	}
	if err := r.quarantine.Confine(key.Tenant, key.Swarm, agent, definition, why); err != nil {
		r.log.Error("the quarantine cannot be kept", "agent", agent, "err", err)
	}
}

// ReleaseAgent takes an agent out of quarantine. It is refused with [ErrNotFound] for
// one that is not there.
func (r *Runtime) ReleaseAgent(tenant, swarm, agent string) error {
	if r.quarantine != nil {
		ok, err := r.quarantine.Release(tenant, swarm, agent)
		if err != nil {
			return err
		}
		if ok {
			r.log.Info("an agent is out of quarantine", "tenant", tenant, "swarm", swarm, "agent", agent)
			return nil
		}
	}
	return refuse(ErrNotFound, "agent '%s' is not in quarantine", agent)
}

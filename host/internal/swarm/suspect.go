package swarm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// TurnID names a turn, the same on every attempt, and tells nothing about it.
type TurnID = [32]byte

// RunSet keeps across the death of the process which turns were computing when
// it died. It is safe for concurrent use and never fails.
type RunSet interface {
	// Suspects are the turns that were, with the number of deaths at which they
	// were again.
	Suspects() map[TurnID]int
	// Begin notes that a turn runs and waits; the number is for what follows.
	Begin(id TurnID) (number int)
	Computing(number int)
	Waiting(number int)
	// End notes that a turn is over, Stop that it will be run again by the next
	// host. Forget clears a suspect that is not run again.
	End(id TurnID, number int)
	Stop(id TurnID, number int)
	Forget(id TurnID)
}

// Quarantine keeps the agents that must not run. It is safe for concurrent use,
// and durable.
type Quarantine interface {
	// Why says why an agent must not run; ok is false for one that may.
	Why(tenant, swarm, agent string) (why string, ok bool)
	// Confine puts in an agent of the definition with a digest.
	Confine(tenant, swarm, agent, definition, why string) error
	// Release reports whether the agent was in it.
	Release(tenant, swarm, agent string) (ok bool, err error)
}

// maxStrikes is how often a suspect may be running when the host dies.
const maxStrikes = 3

// Causes of a [Failure] of a turn that is not run.
const (
	causePoison     = "poison"
	causeQuarantine = "quarantine"
)

// suspects lets the turns that may have killed a host run one at a time, beside
// all others. It is a gate before the schedule: a suspect has no claim until it
// is the one.
type suspects struct {
	set RunSet // nil for a host that keeps none

	mu sync.Mutex
	// strikes are those of the suspects that have not been run.
	strikes map[TurnID]int
	// waiting are suspects that are the next of their agent.
	waiting map[TurnID]suspect
	// seen are turns that wait in tasks that were recovered. open is set when all
	// are known, so that the suspect with the fewest strikes can be told.
	seen   map[TurnID]bool
	open   bool
	active *suspect
}

// suspect is a row of a task.
type suspect struct {
	id    TurnID
	task  TaskKey
	agent string
	row   int64
}

func newSuspects(set RunSet) *suspects {
	s := &suspects{set: set, waiting: map[TurnID]suspect{}, seen: map[TurnID]bool{}}
	if set != nil {
		s.strikes = set.Suspects()
	}
	return s
}

// labelTurn is the label of what names a turn in a [RunSet].
const labelTurn = "turn"

// mayRun reports whether a row may get a turn now. One that may not does when
// its time has come. The caller holds t.mu.
func (r *Runtime) mayRun(t *live, row Row) bool {
	s := r.suspects
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.strikes) == 0 {
		return true
	}
	id := derive(r.secret, t.rec, row.N, labelTurn)
	strikes, ok := s.strikes[id]
	if !ok || strikes >= maxStrikes || s.active != nil && s.active.id == id {
		return true
	}
	one := suspect{id, t.key, row.Agent, row.N}
	if s.open && s.active == nil {
		s.active = &one
		return true
	}
	s.waiting[id] = one
	return false
}

// seeSuspects notes which suspects a task that runs still has. The caller holds
// t.mu.
func (r *Runtime) seeSuspects(t *live) {
	s := r.suspects
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.strikes) == 0 {
		return
	}
	for _, q := range t.queue {
		for _, row := range *q {
			s.seen[derive(r.secret, t.rec, row.N, labelTurn)] = true
		}
	}
}

// openSuspects begins with those suspects that recovery has seen, and clears the
// others: nobody waits for them.
func (r *Runtime) openSuspects() {
	s := r.suspects
	s.mu.Lock()
	for id := range s.strikes {
		if _, waits := s.waiting[id]; !waits && !s.seen[id] {
			s.set.Forget(id)
			delete(s.strikes, id)
		}
	}
	if n := len(s.strikes); n > 0 {
		r.log.Warn("turns were computing when the last host died; they run one at a time", "turns", n)
	}
	s.open, s.seen = true, nil
	s.mu.Unlock()
	r.nextSuspect()
}

// nextSuspect lets the suspect with the fewest strikes run, if none does.
func (r *Runtime) nextSuspect() {
	for {
		one, ok := r.suspects.next()
		if !ok {
			return
		}
		r.mu.Lock()
		t := r.tasks[one.task]
		if t != nil {
			t.refs++
		}
		r.mu.Unlock()
		if t != nil {
			r.kick(t)
			waits := t.has(one)
			r.release(t)
			if waits {
				return
			}
		}
		r.suspects.pass(one.id)
	}
}

// next chooses who is active.
func (s *suspects) next() (best suspect, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open || s.active != nil {
		return suspect{}, false
	}
	for id, one := range s.waiting {
		if !ok || s.strikes[id] < s.strikes[best.id] || s.strikes[id] == s.strikes[best.id] && one.before(best) {
			best, ok = one, true
		}
	}
	if ok {
		delete(s.waiting, best.id)
		s.active = &best
	}
	return best, ok
}

// before makes the choice among equals the same every time.
func (s suspect) before(o suspect) bool {
	return cmp.Or(strings.Compare(s.task.String(), o.task.String()), cmp.Compare(s.row, o.row)) < 0
}

// pass ends the time of the active suspect, if it is this one.
func (s *suspects) pass(id TurnID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active != nil && s.active.id == id {
		s.active = nil
	}
}

// has reports whether a suspect can still come to its turn, or has it.
func (t *live) has(one suspect) bool {
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

// settleSuspect looks after a claim has been taken whether the active suspect
// still has something to wait for, and goes on with the next when it has not.
func (r *Runtime) settleSuspect(t *live, agent string) {
	s := r.suspects
	s.mu.Lock()
	active, idle := s.active, len(s.waiting) == 0
	s.mu.Unlock()
	if active != nil && active.task == t.key && active.agent == agent && !t.has(*active) {
		s.pass(active.id)
	} else if active != nil {
		return
	}
	if !idle {
		r.nextSuspect()
	}
}

// watch is a turn in the set of those that run; nil is one in none.
type watch struct {
	set    RunSet
	number int
}

func (w *watch) computing() {
	if w != nil {
		w.set.Computing(w.number)
	}
}

func (w *watch) waiting() {
	if w != nil {
		w.set.Waiting(w.number)
	}
}

// watch notes that a turn runs; the caller calls over when it is committed, or
// the host stops.
func (r *Runtime) watch(j *job) (over func()) {
	s := r.suspects
	if s.set == nil {
		return func() {}
	}
	id := derive(r.secret, j.rec, j.run.row.N, labelTurn)
	j.watch = &watch{s.set, s.set.Begin(id)}
	return func() {
		if r.life.Err() != nil {
			s.set.Stop(id, j.watch.number)
			return
		}
		s.set.End(id, j.watch.number)
		s.mu.Lock()
		delete(s.strikes, id)
		s.mu.Unlock()
		s.pass(id)
	}
}

// barred says why a turn is not run at all, nil for one that is.
func (r *Runtime) barred(t *live, j *job) *Failure {
	name, key := j.agent.Name, t.key
	id := derive(r.secret, j.rec, j.run.row.N, labelTurn)
	r.suspects.mu.Lock()
	strikes := r.suspects.strikes[id]
	r.suspects.mu.Unlock()
	if strikes >= maxStrikes {
		why := fmt.Sprintf("turn %d of task %s was computing at %d deaths of the host", j.run.row.N, key.Task, strikes+1)
		r.confine(key, name, j.run.def.Digest, why)
		return &Failure{Cause: causePoison, Message: why + "; the agent is in quarantine until `skep agent release " + name + "`"}
	}
	if r.quarantine == nil {
		return nil
	}
	why, ok := r.quarantine.Why(key.Tenant, key.Swarm, name)
	if !ok {
		return nil
	}
	return &Failure{Cause: causeQuarantine, Message: "it is in quarantine until `skep agent release " + name + "`: " + why}
}

func (r *Runtime) confine(key TaskKey, agent, definition, why string) {
	r.log.Error("an agent is in quarantine", "tenant", key.Tenant, "swarm", key.Swarm, "agent", agent, "why", why)
	if r.quarantine == nil {
		return
	}
	if err := r.quarantine.Confine(key.Tenant, key.Swarm, agent, definition, why); err != nil {
		r.log.Error("the quarantine cannot be kept", "agent", agent, "err", err)
	}
}

// ReleaseAgent takes an agent out of quarantine, or is [ErrNotFound].
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

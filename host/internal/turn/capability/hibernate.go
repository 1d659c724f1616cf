package capability

import (
	"context"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
)

// maxHibernations bounds how often a turn is repeated because it has waited.
const maxHibernations = 8

// mayHibernate reports whether a turn may give its sandbox up once more. Each repetition has the
// whole limit of computing time, for it repeats what the part before it has computed; all parts
// together compute two and a half times the limit at most.
func (h *hibernation) mayHibernate(l turn.Limits) bool {
	return h == nil || h.times < maxHibernations && h.cpu <= l.CPU/2
}

// hibernate stops a turn that only waits for effects which can go on without it. It reports false
// for any other, which waits on. The journal is durable first, so that the turn can be repeated.
func (o *ops) hibernate(op abi.Op, awaited []*reply, until time.Time) (*abi.Error, bool) {
	j := o.j
	for _, r := range j.inFlight {
		if !r.async.canOutlive() {
			return nil, false
		}
	}
	if len(j.breakpoints) > 0 {
		return nil, false
	}
	if err := j.flush(j.last); err != nil {
		return j.journalError(op, err), true
	}
	h := &hibernation{group: j.group, running: map[string]runningEffect{}, until: until, attempt: j.attempt, marked: j.attemptMarked, times: 1, calls: j.calls, costs: o.costs, shapes: j.shapes}
	if before := j.wokenFrom; before != nil {
		h.times, h.cpu = before.times+1, before.cpu
	}
	for _, r := range j.inFlight {
		if !r.async.unlink() { // the turn is ending
			h.cancel()
			return nil, false
		}
		h.running[r.call.path] = runningEffect{r.async, r.reserved, r.reservedDay, r.model}
	}
	for _, r := range awaited {
		if r.async != nil {
			h.awaited = append(h.awaited, r.async)
		}
	}
	for _, r := range j.inFlight {
		r.async = nil
	}
	j.inFlight, j.hibernation = nil, h
	o.waitingTurns.hibernations.Add(1)
	j.fail("hibernated", "", "the turn waits without its sandbox")
	return j.stoppedError(op), true
}

// runningEffect is an effect that runs while its turn has no sandbox.
type runningEffect struct {
	async       *asyncOp
	reserved    swarm.Spend
	reservedDay int64
	model       string
}

// hibernation is a turn that waits without a sandbox.
type hibernation struct {
	group   *opGroup
	running map[string]runningEffect // by the path of the call
	awaited []*asyncOp
	// until ends a wait with a timeout; zero for none.
	until   time.Time
	attempt int
	marked  bool
	// times is how often the turn has hibernated, cpu the computing time of its parts so far.
	times  int
	cpu    time.Duration
	calls  map[abi.Op]int64
	costs  *requestCosts
	shapes *callShapes
}

var _ swarm.Hibernation = (*hibernation)(nil)

// Await returns when one of the awaited answers has come, or the turn must go on for another
// reason.
func (h *hibernation) Await(ctx context.Context, interrupted <-chan struct{}) {
	var late <-chan time.Time
	if !h.until.IsZero() {
		timer := time.NewTimer(time.Until(h.until))
		defer timer.Stop()
		late = timer.C
	}
	for {
		for _, f := range h.awaited {
			if f.ready() {
				return
			}
		}
		select {
		case <-h.group.notifier:
		case <-late:
			return
		case <-interrupted:
			return
		case <-ctx.Done():
			return
		}
	}
}

// End ends the turn where it waits.
func (h *hibernation) End(ctx context.Context, err error, spent swarm.Spend) swarm.Outcome {
	h.close()
	var exit *turn.Exit
	if ctx.Err() != nil {
		exit = turn.ContextExit(ctx)
	} else {
		exit = turn.HostExit(err)
	}
	out := swarm.Outcome{Failure: &swarm.Failure{Cause: string(exit.Kind), Limit: exit.Limit, Message: exit.Message}}
	out.Record = &swarm.Record{End: &swarm.TurnEnd{Exit: out.Failure.Cause, Attempt: h.attempt, Calls: h.calls}}
	return h.costs.charge(out, spent)
}

// close ends the effects that no turn has taken back. They are deferred, so that all end when one
// panics.
func (h *hibernation) close() {
	for path, e := range h.running {
		delete(h.running, path)
		defer e.async.Close()
	}
}

// cancel ends the effects that the end of the turn does not end any more.
func (h *hibernation) cancel() {
	for _, e := range h.running {
		e.async.cancel()
	}
}

// wakeFrom goes on with a turn that has hibernated.
func (j *journal) wakeFrom(h *hibernation) {
	j.attempt, j.attemptMarked = h.attempt, h.marked
	if j.shapes = h.shapes; j.shapes != nil {
		j.shapes.carried = true
	}
	j.group, j.wokenFrom, j.repeated = h.group, h, make(chan struct{})
	j.group.notifier.notify() // what Await has received may be for another reply
}

// endRepeat notes that the turn is where it waited when it hibernated.
func (j *journal) endRepeat() {
	if j.isRepeating() {
		close(j.repeated)
	}
}

// isRepeating reports whether the turn has hibernated and is not where it waited then.
func (j *journal) isRepeating() bool { return j.wokenFrom != nil && !isClosed(j.repeated) }

// cancelledAfterRepeat is closed when the turn is interrupted, but not before it is where it waited:
// the time that it gets to end begins there.
func (j *journal) cancelledAfterRepeat(interrupted <-chan struct{}) <-chan struct{} {
	if j.wokenFrom == nil {
		return interrupted
	}
	cancelled := make(chan struct{})
	go func() {
		for _, c := range []<-chan struct{}{j.repeated, interrupted} {
			select {
			case <-c:
			case <-j.ctx.Done():
				return
			}
		}
		close(cancelled)
	}()
	return cancelled
}

// takeRunning takes back the effect of a call that went on without its turn, nil for none.
func (o *ops) takeRunning(ctx context.Context, c call) *reply {
	h := o.j.wokenFrom
	if h == nil {
		return nil
	}
	e, ok := h.running[c.path]
	if !ok {
		return nil
	}
	delete(h.running, c.path)
	e.async.link(ctx)
	r := &reply{ops: o, call: c, turnDone: ctx.Done(), async: e.async, reserved: e.reserved, reservedDay: e.reservedDay, model: e.model}
	o.j.inFlight = append(o.j.inFlight, r)
	return r
}

// remaining is what is left of the timeout of a wait in which the turn has hibernated.
func (j *journal) remaining(timeout time.Duration) time.Duration {
	if j.wokenFrom == nil || j.wokenFrom.until.IsZero() {
		return timeout
	}
	left := max(0, time.Until(j.wokenFrom.until))
	j.wokenFrom.until = time.Time{}
	return min(timeout, left)
}

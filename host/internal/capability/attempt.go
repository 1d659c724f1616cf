package capability

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"skep/host/internal/sandbox"
	"skep/host/internal/swarm"
)

// turnClock is the turn's clock as the guest uses it.
type turnClock struct {
	sandbox.Clock
	j *journal
}

// Sleep does not wait for what an earlier attempt has waited for.
func (c turnClock) Sleep(ctx context.Context, d time.Duration) error { return c.j.sleep(ctx, d) }

// begin opens the journal of a turn.
func begin(ctx context.Context, t *swarm.Turn, b Binding) (*journal, error) {
	j := newJournal(ctx, t, t.Clock(), t.Now)
	j.limit = b.Limits.HostBytes + slack
	if past := t.Past(); past != nil {
		j.recall(past)
		j.give(past.Given)
		return j, nil
	}
	h := t.Header()
	h.Module, h.Recipe = b.Module.Digest(), sandbox.Recipe()
	var err error
	if h.Limits, err = json.Marshal(b.Limits); err != nil {
		return nil, fmt.Errorf("record the turn's limits: %w", err)
	}
	j.header = &h
	return j, nil
}

// recorded is what a turn runs on that an earlier attempt has begun.
func (x *Executor) recorded(ctx context.Context, today Binding, h *swarm.TurnHeader) (Binding, error) {
	b := today
	if err := json.Unmarshal(h.Limits, &b.Limits); err != nil {
		return b, fmt.Errorf("the turn's recorded limits cannot be read: %w", err)
	}
	if h.Recipe != sandbox.Recipe() {
		return b, fmt.Errorf("the turn began on another version of skep or another CPU (%s, here %s), where it cannot be repeated", h.Recipe, sandbox.Recipe())
	}
	if h.Module == today.Module.Digest() {
		return b, nil
	}
	if x.modules == nil {
		return b, fmt.Errorf("the turn began on the module %s, which this host does not have any more; its agent now has %s", h.Module, today.Module.Digest())
	}
	m, err := x.modules.Module(ctx, h.Module)
	if err != nil {
		return b, fmt.Errorf("the turn began on the module %s, which this host cannot run any more: %w", h.Module, err)
	}
	b.Module = m
	return b, nil
}

// outcome is what has become of a turn.
func (j *journal) outcome(res sandbox.Result) swarm.Outcome {
	out := swarm.Outcome{Usage: swarm.Usage{Fuel: res.Fuel, CPU: res.CPU, HostCalls: res.HostCalls}}
	end := &swarm.TurnEnd{Exit: exitOK, Output: res.Output, Attempt: j.attempt, Calls: j.calls, Usage: out.Usage}
	switch {
	case j.suspended:
		out.Suspended, out.Record = j.asks(), j.record(nil)
		return out
	case j.ended != nil:
		out.Failure = j.ended
	case res.Exit != nil:
		out.Failure = &swarm.Failure{Cause: string(res.Exit.Kind), Limit: res.Exit.Limit, Message: res.Exit.Message}
	default:
		result, err := parseResult(res.Output)
		if err != nil {
			out.Failure = &swarm.Failure{Cause: "output", Message: err.Error()}
		}
		out.Result = result
	}
	if out.Failure != nil {
		end.Exit = out.Failure.Cause
	}
	out.Record = j.record(end)
	return out
}

// exitOK is how a turn ends that ends well.
const exitOK = "ok"

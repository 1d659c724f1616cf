package capability

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"skep/host/internal/swarm"
	"skep/host/internal/turn"
)

// turnClock is the turn's clock as the guest uses it.
type turnClock struct {
	turn.Clock
	j *journal
}

// Sleep does not wait in the recorded part of the turn.
func (c turnClock) Sleep(ctx context.Context, d time.Duration) error { return c.j.sleep(ctx, d) }

// openJournal opens the journal of a turn.
func openJournal(ctx context.Context, t *swarm.Turn, b Binding, recipe string) (*journal, error) {
	j := newJournal(ctx, t, t.Buffer(), t.Clock(), t.Now)
	j.limit = b.Limits.HostBytes + journalSlack
	if past := t.PriorAttempt(); past != nil {
		j.loadPrior(past)
		j.addAnswers(past.Answers)
		return j, nil
	}
	h := t.Header()
	h.Module, h.Recipe = b.Module.Digest(), recipe
	var err error
	if h.Limits, err = json.Marshal(b.Limits); err != nil {
		return nil, fmt.Errorf("record the turn's limits: %w", err)
	}
	j.header = &h
	return j, nil
}

// turnOutcome is the outcome of a turn.
func (j *journal) turnOutcome(res turn.Result) swarm.Outcome {
	out := swarm.Outcome{Calls: j.shapes.finish(), Usage: swarm.Usage{Fuel: res.Fuel, CPU: res.CPU, HostCalls: res.HostCalls}, Memory: res.Memory}
	end := &swarm.TurnEnd{Exit: exitOK, Output: res.Output, Attempt: j.attempt, Calls: j.calls, Usage: out.Usage}
	switch {
	case j.hibernation != nil:
		j.hibernation.cpu += out.Usage.CPU
		out.Hibernation = j.hibernation
		return out
	case j.suspended:
		out.Suspended, out.Record = j.pendingBreakpoints(), j.record(nil)
		return out
	case j.failure != nil:
		out.Failure = j.failure
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

// exitOK is the exit of a successful turn.
const exitOK = "ok"

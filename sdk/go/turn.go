package skep

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"skep/sdk/go/internal/abi"
	"skep/sdk/go/internal/link"
	"skep/sdk/go/internal/wire"
)

// Turn is one agent's handling of one message. It is valid until the agent's
// Turn method returns and serves one goroutine at a time.
type Turn struct {
	// Message is what this turn handles.
	Message Message
	// Number counts the task's turns from 1.
	Number int64
	// Priority is the message's tier, 1 (highest) to 5.
	Priority int
	Task     Task
	Agent    Identity
	Budget   Budget
	// Deadline is the wall time left when the turn began, 0 for none.
	Deadline time.Duration
	// Trace is the W3C traceparent of the turn, if the host traces.
	Trace string

	host   link.Host
	tools  json.RawMessage
	tail   json.RawMessage // of the history
	count  int64
	params json.RawMessage
	before json.RawMessage // the last committed state
	after  json.RawMessage // what this turn sets; nil keeps
	notes  []string
}

// Task is the part of a task that its agents see.
type Task struct {
	ID string
	// Owner and Contributors have the form role:id@swarm.
	Owner        string
	Contributors []string
	Completed    bool
}

// Identity is the agent this turn plays.
type Identity struct {
	Name     string
	Swarm    string
	Instance string
	// CommTargets are the addresses this agent may write to.
	CommTargets []string
	CanComplete bool
}

// Tool is one MAIL tool or action, in the form models take.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // a JSON Schema
	// Effect is "read" for an action that changes nothing, else empty.
	Effect string
}

// Budget is what the turn may still use; 0 means no limit.
type Budget struct {
	Fuel        uint64
	HostCalls   int64
	OutputBytes int64
}

func newTurn(h link.Host) (*Turn, error) {
	t := &Turn{host: h}
	if err := t.read(h.Input()); err != nil {
		return nil, Errorf(Invalid, "turn input: %v", err)
	}
	return t, nil
}

// read takes a turn's input.
func (t *Turn) read(raw []byte) error {
	var deadline int64
	err := wire.Object(raw, wire.Fields{
		{"turn", &t.Number}, {"priority", &t.Priority}, {"trace", &t.Trace}, {"deadline_ms", &deadline},
		{"state", &t.before}, {"params", &t.params}, {"message", t.Message.read},
		{"task", into(wire.Fields{
			{"id", &t.Task.ID}, {"owner", &t.Task.Owner}, {"contributors", &t.Task.Contributors}, {"completed", &t.Task.Completed},
		})},
		{"agent", into(wire.Fields{
			{"address", &t.Agent.Name}, {"swarm", &t.Agent.Swarm}, {"instance", &t.Agent.Instance},
			{"comm_targets", &t.Agent.CommTargets}, {"can_complete_tasks", &t.Agent.CanComplete},
		})},
		{"tools", &t.tools},
		{"history", into(wire.Fields{{"count", &t.count}, {"tail", &t.tail}})},
		{"budget", into(wire.Fields{
			{"fuel", &t.Budget.Fuel}, {"host_calls", &t.Budget.HostCalls}, {"output_bytes", &t.Budget.OutputBytes},
		})},
	})
	t.Deadline = time.Duration(deadline) * time.Millisecond
	return err
}

// into reads an object inside another.
func into(fields wire.Fields) func(json.RawMessage) error {
	return func(raw json.RawMessage) error { return wire.Object(raw, fields) }
}

// Tools lists the MAIL tools and actions this agent may call.
func (t *Turn) Tools() ([]Tool, error) {
	var list []Tool
	err := wire.Array(t.tools, func(raw json.RawMessage) error {
		var tool Tool
		err := wire.Object(raw, wire.Fields{{"name", &tool.Name}, {"description", &tool.Description}, {"parameters", &tool.Parameters}, {"effect", &tool.Effect}})
		list = append(list, tool)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	return list, nil
}

// State decodes what the last committed turn of this agent in this task left
// with [Turn.SetState]. It leaves v alone when there is nothing, and sees what
// this turn has set.
func (t *Turn) State(v any) error {
	raw := t.before
	if t.after != nil {
		raw = t.after
	}
	return decode("state", raw, v)
}

// SetState keeps v, encoded as JSON (at most 64 KiB), for the next turn of this
// agent in this task. It counts only if the turn ends well.
func (t *Turn) SetState(v any) error {
	raw, err := marshal(v)
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	t.after = raw
	return nil
}

// ClearState forgets the state.
func (t *Turn) ClearState() { t.after = json.RawMessage("null") }

// Params decodes the agent's params from swarm.toml. It leaves v alone when
// there are none.
func (t *Turn) Params(v any) error { return decode("params", t.params, v) }

// Note adds a line to the agent's history. Later turns see it there.
func (t *Turn) Note(text string) { t.notes = append(t.notes, text) }

// Now reads the turn's clock. It stands still while the agent computes and
// moves with calls and sleeps, so a turn that runs again sees the same times.
// In a module time.Now reads the same clock.
func (t *Turn) Now() time.Time { return t.host.Now() }

// Sleep waits. In a module time.Sleep does the same.
func (t *Turn) Sleep(d time.Duration) { t.host.Sleep(d) }

// result encodes what the turn leaves behind; nothing when nothing changed.
func (t *Turn) result() ([]byte, error) {
	if t.after == nil && len(t.notes) == 0 {
		return nil, nil
	}
	out, err := marshal(abi.TurnResult{State: t.after, Notes: t.notes})
	if err != nil {
		return nil, fmt.Errorf("turn result: %w", err)
	}
	return out, nil
}

func decode(what string, raw json.RawMessage, v any) error {
	if len(raw) == 0 || bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

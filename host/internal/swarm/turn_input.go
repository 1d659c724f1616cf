package swarm

import (
	"encoding/json"
	"fmt"
	"slices"

	"skep/abi"
)

// inputHead, the tools, the message and inputRest are an [abi.TurnInput] with its
// members in their order. The tools are the larger part of a small input and the same
// in every turn of an agent, so they are encoded once.
type inputHead struct {
	V     int       `json:"v"`
	Turn  int64     `json:"turn"`
	Task  abi.Task  `json:"task"`
	Agent abi.Agent `json:"agent"`
}

type inputRest struct {
	Priority   int             `json:"priority"`
	History    abi.History     `json:"history"`
	State      json.RawMessage `json:"state"`
	Params     json.RawMessage `json:"params"`
	DeadlineMS int64           `json:"deadline_ms"`
	Budget     abi.Budget      `json:"budget"`
	Trace      string          `json:"trace,omitempty"`
}

// encodeInput makes the turn's input.
func (t *Turn) encodeInput(state json.RawMessage, tail []abi.HistoryEntry) ([]byte, error) {
	head, err := json.Marshal(inputHead{
		V: abi.Version, Turn: t.row.N,
		Task: abi.Task{
			ID: t.rec.Key.Task, Owner: t.rec.Owner, Contributors: t.rec.Contributors,
			Completed: t.rec.State != StateRunning,
		},
		Agent: abi.Agent{
			Address: t.agent.Name, Swarm: t.def.Name, Instance: t.rec.Key.Instance,
			CommTargets: orEmpty(t.agent.Targets), CanCompleteTasks: t.agent.CanComplete,
		},
	})
	if err != nil {
		return nil, err
	}
	limits := t.agent.Limits
	rest, err := json.Marshal(inputRest{
		Priority: t.row.Tier, History: abi.History{Count: t.rec.History[t.agent.Name], Tail: orEmpty(tail)},
		State: state, Params: t.agent.Params, DeadlineMS: t.agent.wallLimit().Milliseconds(),
		Budget: abi.Budget{Fuel: limits.Fuel, HostCalls: limits.HostCalls, OutputBytes: limits.Output},
		Trace:  t.row.Trace.Parent(),
	})
	if err != nil {
		return nil, err
	}
	tools := t.toolset().encoded
	in := slices.Grow(head[:len(head)-1], len(tools)+len(rest)+2*len(t.row.Message.Payload.Body)+1<<10)
	in = append(append(in, `,"tools":`...), tools...)
	if in, err = t.row.Message.AppendJSON(append(in, `,"message":`...)); err != nil {
		return nil, fmt.Errorf("encode message %s: %w", t.row.Message.ID, err)
	}
	return append(append(in, ','), rest[1:]...), nil
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

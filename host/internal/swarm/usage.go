package swarm

import (
	"maps"
	"time"
)

// Usage is the cost of turns, discarded ones included.
type Usage struct {
	Turns     int64         `json:"turns"`
	Fuel      uint64        `json:"fuel"`
	CPU       time.Duration `json:"cpu"`
	HostCalls int64         `json:"host_calls"`
	// Fetches counts HTTP requests, FetchBytes the bytes of their bodies and answers.
	Fetches    int64 `json:"fetches,omitempty"`
	FetchBytes int64 `json:"fetch_bytes,omitempty"`
	// Spend is the cost of model calls.
	Spend
}

// Add returns the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		u.Turns + v.Turns, u.Fuel + v.Fuel, u.CPU + v.CPU, u.HostCalls + v.HostCalls,
		u.Fetches + v.Fetches, u.FetchBytes + v.FetchBytes, u.Spend.Add(v.Spend),
	}
}

// addedSince is what an attempt adds to the usage of an earlier one. The calls of the
// earlier attempt are replayed and cost nothing again; fuel and time do. A reservation
// for a model call may have become less.
func (u Usage) addedSince(had Usage) Usage {
	u.Turns = max(0, u.Turns-had.Turns)
	u.HostCalls = max(0, u.HostCalls-had.HostCalls)
	u.Fetches = max(0, u.Fetches-had.Fetches)
	u.FetchBytes = max(0, u.FetchBytes-had.FetchBytes)
	u.Spend = u.Spend.Minus(had.Spend)
	return u
}

// maxCounts is the maximum of each count of two attempts. Spend is u's, which is the
// later one.
func (u Usage) maxCounts(v Usage) Usage {
	return Usage{
		Turns: max(u.Turns, v.Turns), HostCalls: max(u.HostCalls, v.HostCalls),
		Fetches: max(u.Fetches, v.Fetches), FetchBytes: max(u.FetchBytes, v.FetchBytes), Spend: u.Spend,
	}
}

// MeteredUsage is the part of the task's usage that earlier attempts at the turn have
// added.
func (t *Turn) MeteredUsage() Usage { return t.rec.Metered[t.row.N].Usage }

// MeteredTurn is the usage of a turn that is not over, and the part of it that each model
// has cost.
type MeteredTurn struct {
	Usage
	Models map[string]Spend `json:"models,omitempty"`
}

// addSpend adds the cost of a call of a model, or its correction. The caller holds the task's mu.
func (rn *runningTurn) addSpend(model string, s Spend) {
	if s == (Spend{}) {
		return
	}
	if rn.spentOn == nil {
		rn.spentOn = map[string]Spend{}
	}
	rn.spent, rn.spentOn[model] = rn.spent.Add(s), rn.spentOn[model].Add(s)
}

// addUsage adds the usage of an attempt. Replayed calls are not counted again.
func (mut *mutationBuilder) addUsage(rn *runningTurn, u Usage) {
	row := rn.row.N
	u.Turns, u.Spend = 1, rn.spent
	had := mut.Task.Metered[row]
	more := u.addedSince(had.Usage)
	mut.Task.Usage = mut.Task.Usage.Add(more)
	if more.Spend != (Spend{}) {
		if mut.Task.Spent == nil {
			mut.Task.Spent = map[string]Spend{}
		}
		mut.Task.Spent[rn.row.Agent] = mut.Task.Spent[rn.row.Agent].Add(more.Spend)
	}
	if mut.Task.Metered == nil {
		mut.Task.Metered = map[int64]MeteredTurn{}
	}
	mut.Task.Metered[row] = MeteredTurn{u.maxCounts(had.Usage), maps.Clone(rn.spentOn)}
	mut.meterTurn(rn, more, had)
}

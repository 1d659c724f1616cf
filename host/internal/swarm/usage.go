package swarm

import "time"

// Usage is what turns have cost, also those that were discarded.
type Usage struct {
	Turns     int64         `json:"turns"`
	Fuel      uint64        `json:"fuel"`
	CPU       time.Duration `json:"cpu"`
	HostCalls int64         `json:"host_calls"`
	// Fetches counts HTTP requests, FetchBytes their bodies and answers.
	Fetches    int64 `json:"fetches,omitempty"`
	FetchBytes int64 `json:"fetch_bytes,omitempty"`
	// Spend is that of calls of models.
	Spend
}

// Add returns the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		u.Turns + v.Turns, u.Fuel + v.Fuel, u.CPU + v.CPU, u.HostCalls + v.HostCalls,
		u.Fetches + v.Fetches, u.FetchBytes + v.FetchBytes, u.Spend.Add(v.Spend),
	}
}

// beyond is what an attempt at a turn adds to what an earlier one has cost. The
// earlier one's calls are repeated and cost nothing again; fuel and time do. What
// was reserved for a call of a model may have become less.
func (u Usage) beyond(had Usage) Usage {
	u.Turns = max(0, u.Turns-had.Turns)
	u.HostCalls = max(0, u.HostCalls-had.HostCalls)
	u.Fetches = max(0, u.Fetches-had.Fetches)
	u.FetchBytes = max(0, u.FetchBytes-had.FetchBytes)
	u.Spend = u.Spend.Minus(had.Spend)
	return u
}

// most is the higher of two counts of the same turn, each by itself. Of what is
// spent it is u's, which is the later one.
func (u Usage) most(v Usage) Usage {
	return Usage{
		Turns: max(u.Turns, v.Turns), HostCalls: max(u.HostCalls, v.HostCalls),
		Fetches: max(u.Fetches, v.Fetches), FetchBytes: max(u.FetchBytes, v.FetchBytes), Spend: u.Spend,
	}
}

// Metered is what the task's usage already has of earlier attempts at the turn.
func (t *Turn) Metered() Usage { return t.rec.Metered[t.row.N] }

// meter counts what an attempt at a turn has cost. What the turn does when it is
// run again is not counted again.
func (s *step) meter(rn *run, u Usage) {
	row := rn.row.N
	u.Turns, u.Spend = 1, rn.spent
	had := s.Task.Metered[row]
	more := u.beyond(had)
	s.Task.Usage = s.Task.Usage.Add(more)
	if more.Spend != (Spend{}) {
		if s.Task.Spent == nil {
			s.Task.Spent = map[string]Spend{}
		}
		s.Task.Spent[rn.row.Agent] = s.Task.Spent[rn.row.Agent].Add(more.Spend)
	}
	if s.Task.Metered == nil {
		s.Task.Metered = map[int64]Usage{}
	}
	s.Task.Metered[row] = u.most(had)
}

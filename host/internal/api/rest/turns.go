package rest

import (
	"time"

	"skep/host/internal/swarm"
)

// Default and maximum of turns of one page.
const (
	turnsPage = 100
	turnsMax  = 500
)

// turnSummary is a turn without its messages, but with the spans that its agent
// recorded.
type turnSummary struct {
	Turn    int64  `json:"turn"`
	Agent   string `json:"agent"`
	Start   string `json:"start"`
	Attempt int    `json:"attempt"`
	// Ops counts the calls of each op, by its name.
	Ops map[string]int64 `json:"ops"`
	// End, Exit and Usage are null while the turn is unfinished or suspended.
	End   *string    `json:"end"`
	Exit  *string    `json:"exit"`
	Usage *turnUsage `json:"usage"`
	Spans []turnSpan `json:"spans,omitempty"`
	// ModelFailures are the calls of models that have failed.
	ModelFailures []swarm.ModelFailure `json:"model_failures,omitempty"`
}

// turnSpan is a part of a turn that its agent marked.
type turnSpan struct {
	Name       string            `json:"name"`
	Parent     int               `json:"parent,omitempty"`
	Action     string            `json:"action,omitempty"`
	Offset     float64           `json:"offset_ms"`
	Duration   float64           `json:"duration_ms"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Error      string            `json:"error,omitempty"`
	Cut        bool              `json:"cut,omitempty"`
}

// turnUsage is what a turn has used.
type turnUsage struct {
	Fuel       uint64  `json:"fuel"`
	CPU        float64 `json:"cpu_ms"`
	Wall       float64 `json:"wall_ms"`
	HostCalls  int64   `json:"host_calls"`
	Fetches    int64   `json:"fetches"`
	FetchBytes int64   `json:"fetch_bytes"`
	Tokens     int64   `json:"tokens"`
	MicroUSD   int64   `json:"micro_usd"`
}

// turns is GET /skep/v1/tasks/{id}/turns.
func (c *call) turns() error {
	after, err := c.intParam("after", 0, 0, maxCursor)
	if err != nil {
		return err
	}
	limit, err := c.intParam("limit", turnsPage, 1, turnsMax)
	if err != nil {
		return err
	}
	snap, shown, err := c.readVisible()
	if err != nil {
		return err
	}
	page, more, err := c.h.tasks.Turns(c.ctx(), snap.Task.Key, after, int(limit))
	if err != nil {
		return err
	}
	turns, next := []turnSummary{}, (*int64)(nil)
	for _, t := range page {
		s := newTurnSummary(t)
		if !shown {
			s.Spans = nil // their names and attributes are the agent's words
		}
		turns = append(turns, s)
	}
	if more {
		next = &page[len(page)-1].N
	}
	return c.reply(struct {
		Task  string        `json:"task_id"`
		Turns []turnSummary `json:"turns"`
		Next  *int64        `json:"next"`
	}{snap.Task.Key.Task, turns, next})
}

func newTurnSummary(t swarm.TurnSummary) turnSummary {
	s := turnSummary{Turn: t.N, Agent: t.Agent, Start: formatTime(t.Start), Attempt: t.Attempt, Ops: map[string]int64{}}
	for op, n := range t.Calls {
		s.Ops[op.String()] += n
	}
	if e := t.End; e != nil {
		at, u := formatTime(e.At), e.Usage
		s.End, s.Exit, s.ModelFailures = &at, &e.Exit, e.ModelFailures
		s.Usage = &turnUsage{u.Fuel, ms(u.CPU), ms(e.Wall), u.HostCalls, u.Fetches, u.FetchBytes, u.Tokens, u.MicroUSD}
		for _, sp := range e.Spans {
			s.Spans = append(s.Spans, turnSpan{sp.Name, sp.Parent, sp.Action, ms(sp.Offset), ms(sp.Duration), sp.Attributes, sp.Error, sp.Cut})
		}
	}
	return s
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

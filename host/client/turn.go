package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Turn is what a host shows of a turn: its cost, the ops that it called and the spans of
// its agent, but no messages. A turn that has written nothing durable yet is not shown.
type Turn struct {
	// N is the number of the turn in its task.
	N     int64  `json:"turn"`
	Agent string `json:"agent"`
	// Start and End are RFC 3339 date-times as the host wrote them. End is empty
	// while the turn is unfinished or waits for people; it has no Exit and no
	// Usage then.
	Start string `json:"start"`
	End   string `json:"end"`
	// Exit is "ok", or the cause of the failure.
	Exit string `json:"exit"`
	// Attempt is the number of its last run, from 1.
	Attempt int `json:"attempt"`
	// Ops counts the calls of each op, by its name.
	Ops   map[string]int64 `json:"ops"`
	Usage *TurnUsage       `json:"usage"`
	// Spans are the parts of the turn that its agent has marked, in the order in
	// which they began.
	Spans []TurnSpan `json:"spans"`
	// ModelFailures are the calls of models that have failed.
	ModelFailures []ModelFailure `json:"model_failures"`
	// Raw is what the host wrote.
	Raw json.RawMessage `json:"-"`
}

// ModelFailure is why calls of a model in a turn have failed.
type ModelFailure struct {
	// Model is the provider's name of the model.
	Model string `json:"model"`
	// Kind is the kind of the failure, Cause the same in words.
	Kind  string `json:"kind"`
	Cause string `json:"cause"`
	Count int64  `json:"count"`
}

// TurnUsage is what a turn has cost.
type TurnUsage struct {
	Fuel uint64
	// CPU is computing time. Wall is the time from start to end, with all that it
	// waited for.
	CPU, Wall time.Duration
	HostCalls int64
	// Fetches counts HTTP requests, FetchBytes their bodies and answers.
	Fetches, FetchBytes int64
	// Tokens and MicroUSD are as in [Usage].
	Tokens, MicroUSD int64
}

// UnmarshalJSON reads times in milliseconds.
func (u *TurnUsage) UnmarshalJSON(raw []byte) error {
	var w struct {
		usageJSON
		WallMS float64 `json:"wall_ms"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	*u = TurnUsage{w.Fuel, spanOf(w.CPUms), spanOf(w.WallMS), w.HostCalls, w.Fetches, w.FetchBytes, w.Tokens, w.MicroUSD}
	return nil
}

// TurnSpan is a part of a turn as its agent has marked it.
type TurnSpan struct {
	Name string
	// Parent is the place of the span that it lies in, from 1; 0 for none.
	Parent int
	// Action is the one whose code has marked it.
	Action string
	// Offset is the time from the turn's start.
	Offset, Duration time.Duration
	Attributes       map[string]string
	// Error is what has gone wrong in it. Cut: it had not ended when its turn or
	// its action did.
	Error string
	Cut   bool
}

// UnmarshalJSON reads times in milliseconds.
func (s *TurnSpan) UnmarshalJSON(raw []byte) error {
	var w struct {
		Name       string            `json:"name"`
		Parent     int               `json:"parent"`
		Action     string            `json:"action"`
		OffsetMS   float64           `json:"offset_ms"`
		DurationMS float64           `json:"duration_ms"`
		Attributes map[string]string `json:"attributes"`
		Error      string            `json:"error"`
		Cut        bool              `json:"cut"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	*s = TurnSpan{w.Name, w.Parent, w.Action, spanOf(w.OffsetMS), spanOf(w.DurationMS), w.Attributes, w.Error, w.Cut}
	return nil
}

// spanOf makes a duration of milliseconds.
func spanOf(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// Turns gives the turns of a task after the one with a number, 0 for all, in the
// order of their numbers, page by page. An error is the last element.
func (c *Client) Turns(ctx context.Context, id string, after int64) iter.Seq2[Turn, error] {
	return c.TurnsOf(ctx, TaskOf{ID: id}, after)
}

// TurnsOf is [Client.Turns] for another's task; it has no spans.
func (c *Client) TurnsOf(ctx context.Context, of TaskOf, after int64) iter.Seq2[Turn, error] {
	return func(yield func(Turn, error) bool) {
		for {
			page, next, err := c.turns(ctx, of, after)
			if err != nil {
				yield(Turn{}, err)
				return
			}
			for _, t := range page {
				if !yield(t, nil) {
					return
				}
			}
			if next == nil {
				return
			}
			if *next <= after {
				yield(Turn{}, fmt.Errorf("turns: %w: the page after %d begins at %d", ErrNotMAIL, after, *next))
				return
			}
			after = *next
		}
	}
}

// turns reads one page.
func (c *Client) turns(ctx context.Context, of TaskOf, after int64) (list []Turn, next *int64, err error) {
	query := url.Values{}
	if after > 0 {
		query.Set("after", strconv.FormatInt(after, 10))
	}
	var page struct {
		Turns []json.RawMessage `json:"turns"`
		Next  *int64            `json:"next"`
	}
	if _, err := c.do(ctx, call{method: http.MethodGet, path: of.path("/turns", query)}, &page); err != nil {
		return nil, nil, err
	}
	for _, raw := range page.Turns {
		t := Turn{Raw: raw}
		if err := json.Unmarshal(raw, &t); err != nil {
			return nil, nil, fmt.Errorf("turns: %w: %w", ErrNotMAIL, err)
		}
		list = append(list, t)
	}
	return list, page.Next, nil
}

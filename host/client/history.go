package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
)

// History is a page of what an agent remembers of a task.
type History struct {
	Task    string            `json:"task_id"`
	Agent   string            `json:"agent"`
	Entries []json.RawMessage `json:"entries"`
	// Next is where the next page begins, nil after the last.
	Next *int64 `json:"next"`
}

// Entry is one thing an agent remembers.
type Entry struct {
	// Seq is its place in the agent's history, from 1.
	Seq int64 `json:"seq"`
	// Turn is the number of the turn in which it came about, 0 for what was
	// remembered without one.
	Turn int64 `json:"turn"`
	// Time is an RFC 3339 date-time as the host wrote it.
	Time string `json:"time"`
	// Kind is "in", "call", "result" or "note": that member is set, for "in"
	// Message.
	Kind    string          `json:"kind"`
	Message json.RawMessage `json:"message"`
	Call    *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"call"`
	Result *struct {
		ID   string `json:"id"`
		OK   bool   `json:"ok"`
		Text string `json:"text"`
	} `json:"result"`
	Note string `json:"note"`
	// Raw is what the host wrote.
	Raw json.RawMessage `json:"-"`
}

// History returns up to limit entries that come after a position, 0 for the
// first. A limit of 0 leaves the size of the page to the host.
func (c *Client) History(ctx context.Context, id, agent string, after int64, limit int) (History, error) {
	query := url.Values{"agent": {agent}}
	if after > 0 {
		query.Set("after", strconv.FormatInt(after, 10))
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var h History
	_, err := c.do(ctx, call{method: http.MethodGet, path: taskPath(id) + "/history?" + query.Encode()}, &h)
	return h, err
}

// Entries gives all that an agent remembers after a position, 0 for all, page by
// page. An error is the last element.
func (c *Client) Entries(ctx context.Context, id, agent string, after int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for {
			page, err := c.History(ctx, id, agent, after, 0)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, raw := range page.Entries {
				e := Entry{Raw: raw}
				if err := json.Unmarshal(raw, &e); err != nil {
					yield(Entry{}, fmt.Errorf("history: %w: %w", ErrNotMAIL, err))
					return
				}
				if !yield(e, nil) {
					return
				}
			}
			if page.Next == nil {
				return
			}
			if *page.Next <= after {
				yield(Entry{}, fmt.Errorf("history: %w: the page after %d begins at %d", ErrNotMAIL, after, *page.Next))
				return
			}
			after = *page.Next
		}
	}
}

// errShort: a log lacks entries that its task counts.
var errShort = errors.New("the log ends before the task's cursor")

// Log gives the events after a cursor up to another, which the task has reached
// already (see [Task]). Unlike [Client.Stream] it does not wait, and leaves out
// what no log keeps. An error is the last element.
func (c *Client) Log(ctx context.Context, id string, after, through int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for after < through {
			begun := after
			for e, err := range c.Stream(ctx, id, after) {
				if err != nil {
					yield(Event{}, err)
					return
				}
				if e.Cursor == 0 {
					continue
				}
				if e.Cursor > through || !yield(e, nil) {
					return
				}
				if after = e.Cursor; after == through {
					return
				}
			}
			if after == begun {
				yield(Event{}, fmt.Errorf("task %s, event %d of %d: %w", id, after, through, errShort))
				return
			}
		}
	}
}

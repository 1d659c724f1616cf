package skeptest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	skep "skep/sdk/go"
	"skep/sdk/go/internal/abi"
)

// Bounds of timers, as a host has them.
const (
	maxTimers = 16
	maxTimer  = 30 * 24 * time.Hour
	maxBody   = 256 << 10
)

// pending are the timers as the turn leaves them.
func (h *host) pending() []Timer {
	all := slices.Concat(h.world.timers, h.timers)
	return slices.DeleteFunc(all, func(t Timer) bool { return slices.Contains(h.cancelled, t.ID) })
}

func (h *host) timerSet(req json.RawMessage) (any, error) {
	var ask struct {
		After any    `json:"after"`
		Body  string `json:"body"`
	}
	if err := strict(req, &ask); err != nil {
		return nil, err
	}
	after, err := span(ask.After)
	task := h.in.Message.Task
	switch n := count(h.pending(), task); {
	case err != nil:
		return nil, err
	case after < time.Millisecond || after > maxTimer:
		return nil, because(skep.Invalid, "after", "after is %v; it must be from 1 ms to 30 days", after)
	case len(ask.Body) > maxBody:
		return nil, because(skep.Limit, "body", "body has %d bytes, at most %d", len(ask.Body), maxBody)
	case n >= maxTimers:
		return nil, because(skep.Limit, "timers", "the task has %d timers pending, its limit; cancel one first", n)
	}
	h.world.made++
	id := fmt.Sprintf("00000000-0000-4000-9000-%012x", h.world.made)
	h.timers = append(h.timers, Timer{ID: id, Agent: h.in.Agent, Task: task, Body: ask.Body, Due: h.now.Add(after)})
	return abi.TimerResponse{ID: id}, nil
}

func count(timers []Timer, task string) (n int) {
	for _, t := range timers {
		if t.Task == task {
			n++
		}
	}
	return n
}

// span reads a time in either form.
func span(v any) (time.Duration, error) {
	switch v := v.(type) {
	case string:
		if d, err := time.ParseDuration(v); err == nil {
			return d, nil
		}
	case float64:
		return time.Duration(v * float64(time.Millisecond)), nil
	}
	return 0, because(skep.Invalid, "json", "timer.set: after must be a time as in \"90s\" or a number of milliseconds")
}

func (h *host) timerCancel(req json.RawMessage) (any, error) {
	var ask abi.TimerCancelRequest
	if err := strict(req, &ask); err != nil {
		return nil, err
	}
	mine := func(t Timer) bool {
		return t.ID == ask.ID && t.Agent == h.in.Agent && t.Task == h.in.Message.Task
	}
	if !slices.ContainsFunc(h.pending(), mine) {
		return nil, because(skep.NotFound, "timer", "agent %q has no timer %.64q pending in this task", h.in.Agent, ask.ID)
	}
	h.cancelled = append(h.cancelled, ask.ID)
	return struct{}{}, nil
}

package abi

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// TimerRequest is the request of op timer.set.
type TimerRequest struct {
	// After is 1 ms to 30 days.
	After Span `json:"after"`
	// Body is the body of the message that comes then.
	Body string `json:"body"`
}

// TimerResponse is the answer of op timer.set. ID is also the id of the message
// that comes.
type TimerResponse struct {
	ID string `json:"id"`
}

// TimerCancelRequest is the request of op timer.cancel; its answer is empty.
type TimerCancelRequest struct {
	ID string `json:"id"`
}

// Span is a length of time: in JSON a text as in "1h30m" or "250ms", or a number
// of milliseconds.
type Span time.Duration

// MarshalJSON writes the text.
func (s Span) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(s).String()) }

// UnmarshalJSON reads both forms.
func (s *Span) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if d, err := time.ParseDuration(text); err == nil {
			*s = Span(d)
			return nil
		}
	}
	var ms float64
	if json.Unmarshal(raw, &ms) == nil && math.Abs(ms) < float64(math.MaxInt64/time.Millisecond) {
		*s = Span(ms * float64(time.Millisecond))
		return nil
	}
	return fmt.Errorf("a span of time is a text as in \"90s\", or a number of milliseconds, not %.40s", raw)
}

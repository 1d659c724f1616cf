package cli

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"skep/host/client"
)

// longPause is a pause that a person notices.
const longPause = 2 * time.Second

// setbacks tells the person of the repeats of a client's calls.
type setbacks struct {
	app  *app
	mu   sync.Mutex
	last string
}

// tell says why a call is repeated, each cause once, and then only how long the
// next pause is.
func (s *setbacks) tell(cause error, pause time.Duration) {
	if s.app.answered.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	again := "trying again"
	if pause >= time.Second {
		again += fmt.Sprintf(" in %d s", pause.Round(time.Second)/time.Second)
	}
	kind, same := setback(cause), constant(cause)
	if same != s.last {
		s.last = same
		s.app.notef("%s %s; %s", s.app.noteStyle().yellow(kind), inLine(cause.Error()), again)
	} else if pause >= longPause {
		s.app.notef("%s as before; %s", s.app.noteStyle().yellow(kind), again)
	}
}

// constant is what two failures for one cause have in common: a refusal names the
// request as well.
func constant(cause error) string {
	var refusal *client.Error
	if errors.As(cause, &refusal) {
		return fmt.Sprintf("%d %s", refusal.Status, refusal.Detail)
	}
	return cause.Error()
}

// setback is what has kept a call from its answer.
func setback(cause error) string {
	var refusal *client.Error
	if errors.As(cause, &refusal) {
		return "not now:"
	}
	return "connection lost:"
}

package cli

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"skep/host/client"
)

// noticeablePause is the shortest pause that is printed again.
const noticeablePause = 2 * time.Second

// retryNotes prints the repeats of a client's calls.
type retryNotes struct {
	app  *app
	mu   sync.Mutex
	last string
}

// report prints why a call is repeated: each cause once, then only the next pause.
func (s *retryNotes) report(cause error, pause time.Duration) {
	if s.app.answered.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	again := "trying again"
	if pause >= time.Second {
		again += fmt.Sprintf(" in %d s", pause.Round(time.Second)/time.Second)
	}
	kind, same := retryKind(cause), causeKey(cause)
	if same != s.last {
		s.last = same
		s.app.notef("%s %s; %s", s.app.noteStyle().yellow(kind), inLine(cause.Error()), again)
	} else if pause >= noticeablePause {
		s.app.notef("%s as before; %s", s.app.noteStyle().yellow(kind), again)
	}
}

// causeKey is the text that failures of one cause share: a refusal also names the
// request.
func causeKey(cause error) string {
	var refusal *client.Error
	if errors.As(cause, &refusal) {
		return fmt.Sprintf("%d %s", refusal.Status, refusal.Detail)
	}
	return cause.Error()
}

// retryKind is the kind of a failure that is retried.
func retryKind(cause error) string {
	var refusal *client.Error
	if errors.As(cause, &refusal) {
		return "not now:"
	}
	return "connection lost:"
}

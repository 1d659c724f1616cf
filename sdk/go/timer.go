package skep

import (
	"time"

	"skep/sdk/go/internal/abi"
)

// SubjectTimer is the subject of the message that a timer brings.
const SubjectTimer = "::timer::"

// FromTimer reports whether a timer of this agent has brought the message. Its ID
// is the timer's, its Body what the timer was set with.
func (m *Message) FromTimer() bool { return m.FromSystem() && m.Subject == SubjectTimer }

// SetTimer has the host send this agent a message of this task when after has
// passed, 1 ms to 30 days by the turn's clock. It counts only if the turn ends
// well, and then survives restarts. While a timer is pending, AwaitMessage
// succeeds. A task has at most 16 pending; one more is [Limit].
func (t *Turn) SetTimer(after time.Duration, body string) (id string, err error) {
	var rsp abi.TimerResponse
	err = t.Call(OpTimerSet, abi.TimerRequest{After: abi.Span(after.String()), Body: body}, &rsp)
	return rsp.ID, err
}

// CancelTimer ends a timer that this agent has set in this task, as long as the
// turn on its message has not begun; else it is [NotFound]. It counts only if the
// turn ends well.
func (t *Turn) CancelTimer(id string) error {
	return t.Call(OpTimerCancel, abi.TimerCancelRequest{ID: id}, nil)
}

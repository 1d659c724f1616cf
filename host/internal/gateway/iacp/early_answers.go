package iacp

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
)

// Limits of [earlyAnswers] of a connection. A single answer may be larger.
const (
	maxEarly      = 64
	maxEarlyBytes = 4 << 20
)

// errNoQuestion is returned for an answer to which there is no question.
var errNoQuestion = fmt.Errorf("parent_message_id names no message that waits: %w", gateway.ErrUnknown)

// earlyAnswers keep answers to questions that no attempt waits for: after a restart of the host a
// peer may send its answers again before the host sends the questions again, and need not answer
// a repeat after an acknowledgement. They are safe for concurrent use.
type earlyAnswers struct {
	mu   sync.Mutex
	byID map[waitKey]*earlyAnswer
}

// earlyAnswer is an answer that is kept for its question as long as its connection lasts.
type earlyAnswer struct {
	c      *conn
	caller gateway.Caller
	early
	// ack acknowledges it when the question is not sent in time. The answer stays.
	ack *time.Timer
}

func newEarlyAnswers() *earlyAnswers { return &earlyAnswers{byID: map[waitKey]*earlyAnswer{}} }

// keep keeps an answer for its question, and reports whether it has. An answer that is no end, or
// that allows a repeat of the question, is not kept.
func (all *earlyAnswers) keep(c *conn, caller gateway.Caller, m message.Message, text []byte) bool {
	var r result
	if json.Unmarshal(m.Payload, &r) != nil || r.Status == "accepted" || r.Status == "in_progress" || m.Type == message.ErrorResponse && r.Retry {
		return false
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	count, bytes := 0, 0
	for _, other := range all.byID {
		if other.c == c {
			count, bytes = count+1, bytes+len(other.text)
		}
	}
	key := waitKey{realmOf(caller), m.Parent}
	if all.byID[key] != nil || count >= maxEarly || count > 0 && bytes+len(text) > maxEarlyBytes {
		return false
	}
	ack := time.AfterFunc(c.g.Ack/5, func() {
		c.g.record(caller, m, text, gateway.Exchange{}, errNoQuestion)
		c.acknowledge(m)
	})
	all.byID[key] = &earlyAnswer{c, caller, early{m, text}, ack}
	return true
}

// bring delivers the answer to a question that is about to be sent again, if it is there.
func (all *earlyAnswers) bring(c gateway.Caller, id string) {
	all.mu.Lock()
	key := waitKey{realmOf(c), id}
	kept := all.byID[key]
	delete(all.byID, key)
	all.mu.Unlock()
	if kept != nil {
		kept.ack.Stop()
		kept.c.answered(kept.caller, kept.Message, kept.text)
	}
}

// leave forgets the answers of a connection that has ended: its peer sends them again.
func (all *earlyAnswers) leave(c *conn) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for key, kept := range all.byID {
		if kept.c == c {
			kept.ack.Stop()
			delete(all.byID, key)
		}
	}
}

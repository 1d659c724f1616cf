package gateway

import (
	"log/slog"
	"sync"
	"time"

	"skep/host/internal/swarm"
)

// outagePause is the least time between two lines about one partner's outage.
const outagePause = time.Minute

// OutageLog logs partners that do not take their messages: the first attempt that fails, then
// one in a minute, and the first that succeeds. It is safe for concurrent use.
type OutageLog struct {
	log *slog.Logger
	now func() time.Time

	mu sync.Mutex
	// lines has the time of the last line about each partner that is away.
	lines map[string]time.Time
}

// NewOutageLog returns a log without an outage. now is the clock.
func NewOutageLog(log *slog.Logger, now func() time.Time) *OutageLog {
	return &OutageLog{log: log, now: now, lines: map[string]time.Time{}}
}

// Record notes what became of an attempt to bring a message to a partner. A refusal leaves
// the outage as it is: it may be the host's own.
func (o *OutageLog) Record(gatewayName string, p Partner, d swarm.Delivery, c Carried) {
	o.mu.Lock()
	defer o.mu.Unlock()
	last, away := o.lines[p.Name]
	switch now := o.now(); {
	case c.State == Refused:
	case c.State == Taken && away:
		delete(o.lines, p.Name)
		o.log.Info("a partner takes messages again", "gateway", gatewayName, "partner", p.Name)
	case c.State != Taken && (!away || now.Sub(last) >= outagePause):
		o.lines[p.Name] = now
		o.log.Warn("a partner has not taken a message, which is sent again until give_up", "gateway", gatewayName, "partner", p.Name, "url", p.URL,
			"recipient", d.Wrapper.Payload.Recipient().Name, "task_id", d.Wrapper.Payload.TaskID, "reason", c.Reason, "retry_after", c.Wait, "give_up", p.GiveUp)
	}
}

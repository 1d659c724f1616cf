package gateway

import (
	"context"
	"errors"
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

// Record notes what became of an attempt to bring a message to a partner. ctx is the attempt's: one
// that the host has cancelled is no outage, one whose time is over is. A refusal leaves the outage
// as it is: it may be the host's own.
func (o *OutageLog) Record(ctx context.Context, gatewayName string, p Partner, d swarm.Delivery, c Carried) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	switch outage, over := o.note(p.Name, c.State); {
	case outage:
		o.log.Warn("a partner has not taken a message, which is sent again until give_up", "gateway", gatewayName, "partner", p.Name, "url", p.URL,
			"recipient", d.Wrapper.Payload.Recipient().Name, "task_id", d.Wrapper.Payload.TaskID, "reason", c.Reason, "retry_after", c.Wait, "give_up", p.GiveUp)
	case over:
		o.log.Info("a partner takes messages again", "gateway", gatewayName, "partner", p.Name)
	}
}

// note reports whether an attempt is to have a line: about an outage, or about its end. The lines
// are written without the lock, which all partners share: a log may be slow.
func (o *OutageLog) note(partner string, state CarriedState) (outage, over bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	last, away := o.lines[partner]
	now := o.now()
	switch {
	case state == Refused:
	case state == Taken:
		delete(o.lines, partner)
		over = away
	case !away || now.Sub(last) >= outagePause:
		o.lines[partner] = now
		outage = true
	}
	return outage, over
}

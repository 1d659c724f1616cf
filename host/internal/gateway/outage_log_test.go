package gateway_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// TestOutageLog: a partner that is away has a line at once and one a minute, which names where
// and why, and one as it is back. A refusal is no outage.
func TestOutageLog(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	now := time.Unix(1e9, 0)
	log := gateway.NewOutageLog(slog.New(slog.NewTextHandler(&lines, nil)), func() time.Time { return now })
	lab := gateway.Partner{Name: "lab", URL: "https://lab.example", GiveUp: 5 * time.Minute}
	d := swarm.Delivery{Wrapper: mail.Interswarm{Payload: mail.Payload{TaskID: "t1"}}}
	away := gateway.Carried{State: gateway.Later, Reason: "the connection was refused", Wait: 3 * time.Second}
	for i, step := range []struct {
		partner gateway.Partner
		carried gateway.Carried
		after   time.Duration
		want    string
	}{
		{lab, gateway.Carried{State: gateway.Taken}, 0, ""},
		{lab, gateway.Carried{State: gateway.Refused, Reason: "it has no url"}, 0, ""},
		{lab, away, 0, `partner=lab url=https://lab.example recipient="" task_id=t1 reason="the connection was refused" retry_after=3s give_up=5m0s`},
		{lab, gateway.Carried{State: gateway.Unanswered}, 59 * time.Second, ""},
		{lab, gateway.Carried{State: gateway.Refused}, 0, ""},
		{gateway.Partner{Name: "depot"}, away, 0, "partner=depot"},
		{lab, away, time.Second, "partner=lab"},
		{lab, away, time.Second, ""},
		{lab, gateway.Carried{State: gateway.Taken}, 0, "a partner takes messages again"},
		{lab, gateway.Carried{State: gateway.Taken}, 0, ""},
		{lab, gateway.Carried{}, 0, "partner=lab"},
	} {
		now = now.Add(step.after)
		lines.Reset()
		log.Record(t.Context(), "uamp", step.partner, d, step.carried)
		if got := lines.String(); (got == "") != (step.want == "") || !strings.Contains(got, step.want) {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}

// TestOutageOfAttempts: an attempt whose time is over is an outage, one that the host has cancelled is
// none.
func TestOutageOfAttempts(t *testing.T) {
	t.Parallel()
	late, cancelLate := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancelLate()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for name, c := range map[string]struct {
		ctx  context.Context
		line bool
	}{"late": {late, true}, "stopped": {stopped, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lines bytes.Buffer
			log := gateway.NewOutageLog(slog.New(slog.NewTextHandler(&lines, nil)), time.Now)
			log.Record(c.ctx, "uamp", gateway.Partner{Name: "lab"}, swarm.Delivery{}, gateway.Carried{State: gateway.Unanswered})
			if got := lines.Len() > 0; got != c.line {
				t.Errorf("logged %q", lines.String())
			}
		})
	}
}

// blockedLog is a log whose lines about one partner wait for a release.
type blockedLog struct {
	slog.Handler
	writing, release chan struct{}
}

// Handle implements [slog.Handler].
func (b blockedLog) Handle(ctx context.Context, r slog.Record) error {
	blocked := false
	r.Attrs(func(a slog.Attr) bool {
		blocked = blocked || a.Key == "partner" && a.Value.String() == "lab"
		return true
	})
	if blocked {
		close(b.writing)
		<-b.release
	}
	return b.Handler.Handle(ctx, r)
}

// TestOutageLogIsSlow: a line that cannot be written holds up no other partner.
func TestOutageLogIsSlow(t *testing.T) {
	t.Parallel()
	slow := blockedLog{slog.NewTextHandler(&bytes.Buffer{}, nil), make(chan struct{}), make(chan struct{})}
	log := gateway.NewOutageLog(slog.New(slow), time.Now)
	record := func(partner string) chan struct{} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			log.Record(t.Context(), "uamp", gateway.Partner{Name: partner}, swarm.Delivery{}, gateway.Carried{State: gateway.Later})
		}()
		return done
	}
	first := record("lab")
	<-slow.writing
	select {
	case <-record("depot"):
	case <-time.After(time.Minute):
		t.Error("another partner's attempt waits for the log")
	}
	close(slow.release)
	<-first
}

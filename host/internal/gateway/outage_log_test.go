package gateway_test

import (
	"bytes"
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
		log.Record("uamp", step.partner, d, step.carried)
		if got := lines.String(); (got == "") != (step.want == "") || !strings.Contains(got, step.want) {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}

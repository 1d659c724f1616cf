package acp

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/acp/broker"
	"skep/host/internal/gateway/gatewaytest"
)

// busy is a runtime that cannot take the next messages.
type busy struct {
	*gatewaytest.Runtime
	times int
	tried func()
}

func (b *busy) Ask(ctx context.Context, c gateway.Caller, a gateway.Ask) (gateway.Exchange, error) {
	b.tried()
	if b.times--; b.times >= 0 {
		return gateway.Exchange{}, gateway.ErrBusy
	}
	return b.Runtime.Ask(ctx, c, a)
}

// A message that the host cannot take now is tried again, and not acknowledged while the
// connection lasts; one at a topic that is not the partner's is none.
func TestQueueTriesAgain(t *testing.T) {
	t.Parallel()
	rt := &busy{Runtime: gatewaytest.New(), times: 2, tried: func() {}}
	t.Cleanup(rt.Close)
	rt.Expose("default", gateway.ExposedAgent{Swarm: "hive", Name: "calc"}, gatewaytest.Echo)
	p := gateway.Partner{Name: "acme", Tenant: "default", IDs: []string{"agent*"}, May: gateway.Rights{gateway.MayAsk}, Options: map[string]any{topicsOption: "t"}}
	rt.AddPartner(p)
	g := New(Options{Runtime: rt})
	q := &queue{g: g, partner: "acme", topics: "t", conn: broker.New(broker.Options{Log: slog.New(slog.DiscardHandler)})}
	m := broker.Message{Topic: "t/agentA/out", Payload: []byte(acptest.New("REQUEST", "agentA", "calc", "7").Text())}
	if !q.take(t.Context(), m) || rt.times != -1 {
		t.Errorf("it is not taken; %d refusals are left", rt.times)
	}
	ctx, lose := context.WithCancel(t.Context())
	rt.times, rt.tried = 1000, lose
	m.Payload = []byte(acptest.New("REQUEST", "agentA", "calc", "8").Text())
	if q.take(ctx, m) {
		t.Error("a message that was not taken is acknowledged")
	}
	// What must be answered first, as by an ERROR, waits for the connection.
	ctx, lose = context.WithCancel(t.Context())
	lose()
	m.Payload = []byte("no message")
	if q.take(ctx, m) {
		t.Error("a message whose ERROR was not sent is acknowledged")
	}
	rt.tried = func() { t.Error("it reached an agent") }
	m.Topic = "other/agentA/out"
	if !q.take(t.Context(), m) {
		t.Error("a message at another topic stays")
	}
}

// TestQueueEmpty: an empty message, with which a client removes one that the broker retains, is
// no message: it gets no ERROR, and is logged once.
func TestQueueEmpty(t *testing.T) {
	t.Parallel()
	rt := gatewaytest.New()
	t.Cleanup(rt.Close)
	rt.AddPartner(gateway.Partner{Name: "acme", Tenant: "default", IDs: []string{"agent*"}, Options: map[string]any{topicsOption: "t"}})
	var log strings.Builder
	q := &queue{g: New(Options{Runtime: rt, Log: slog.New(slog.NewTextHandler(&log, nil))}), partner: "acme", topics: "t"}
	refused, taken := q.takeOnce(t.Context(), broker.Message{Topic: "t/agentA/out"})
	if refused != nil || !taken || strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "t/agentA/out") {
		t.Errorf("taken %t, refused with %v, logged %s", taken, refused, log.String())
	}
}

// A message whose ERROR cannot be sent for a while has one line in the log of messages
// (G-058).
func TestQueueRefusesOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt := gatewaytest.New()
		defer rt.Close()
		rt.AddPartner(gateway.Partner{Name: "acme", Tenant: "default", IDs: []string{"agent*"}, May: gateway.Rights{gateway.MayAsk}, Options: map[string]any{topicsOption: "t"}})
		q := &queue{g: New(Options{Runtime: rt}), partner: "acme", topics: "t", conn: broker.New(broker.Options{Log: slog.New(slog.DiscardHandler)})}
		for n, text := range []string{"no message", acptest.New("REQUEST", "agentA", "nobody", "7").Text()} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if q.take(ctx, broker.Message{Topic: "t/agentA/out", Payload: []byte(text)}) {
				t.Errorf("%s: acknowledged, and its ERROR was not sent", text)
			}
			if seen := rt.Events(); len(seen) != n+1 {
				t.Fatalf("%s: the log has %d lines, want %d", text, len(seen), n+1)
			}
		}
	})
}

// TestQueueUnusable: a message in another spelling of the topic, and one above
// max_body that the broker brings, are no loss without a word: an ERROR and a line in the log.
func TestQueueUnusable(t *testing.T) {
	t.Parallel()
	rt := gatewaytest.New()
	t.Cleanup(rt.Close)
	rt.AddPartner(gateway.Partner{Name: "acme", Tenant: "default", IDs: []string{"scale*"}, May: gateway.Rights{gateway.MayAsk}, Options: map[string]any{topicsOption: "t"}})
	g := New(Options{Runtime: rt, MQTT: &MQTT{}})
	q := &queue{g: g, partner: "acme", topics: "t"}
	ask := acptest.New("REQUEST", "scale-1", "calc", "7")
	large := ask
	large.Body = strings.Repeat("x", g.brokerOptions("t").MaxPacket-1<<10)
	for n, c := range []struct {
		level, text, receiver, want string
	}{
		{"scale%2D1", ask.Text(), "scale-1", `"scale%2D1" is written "scale-1"`},
		{"scale%zz", ask.Text(), "scale-1", `"scale%zz" is no id`},
		{"scale-1", large.Text(), "scale-1", "larger than 1048576 bytes"},
	} {
		refused, _ := q.takeOnce(t.Context(), broker.Message{Topic: "t/" + c.level + "/out", Payload: []byte(c.text)})
		if refused == nil || outcome(*refused) != codeMalformed || !strings.Contains(refused.Body, strings.ReplaceAll(c.want, `"`, `\"`)) && !strings.Contains(refused.Body, c.want) || string(refused.Header.Receiver) != c.receiver {
			t.Fatalf("%s: the ERROR is %.300v, want %s", c.level, refused, c.want)
		}
		if got, _ := q.levelOf("t/" + c.level + "/out"); got != c.level {
			t.Errorf("%s: it is sent to %s", c.level, got)
		}
		if seen := rt.Events(); len(seen) != n+1 || seen[n].Verdict != "refused" || !strings.Contains(seen[n].Reason, c.want) {
			t.Errorf("%s: the log has %+v", c.level, seen)
		}
	}
}

// An id is one level of a topic, whatever it has.
func TestAgentLevel(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"agentA", "a/b", "a+b", "#", "agent://x/y", "ü b", "100%"} {
		level := agentLevel(id)
		if got, err := agentOfLevel(level); got != id || err != nil {
			t.Errorf("%q is %q and back %q", id, level, got)
		}
		for _, c := range level {
			if c == '+' || c == '#' || c == '/' {
				t.Errorf("%q is %q", id, level)
			}
		}
	}
	for level, want := range map[string]string{"%61": `the topic's "%61" is written "a"`, "a%zz": "is no id", "%00": "is no id", "": "is no id"} {
		if _, err := agentOfLevel(level); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("level %q: %v, want %s", level, err, want)
		}
	}
}

// TestClientIDs: two hosts at one broker have other names there, whatever parts their
// names and their partners' topics have in common: a broker ends the connection before of a name.
func TestClientIDs(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, pair := range [][2]string{{"a-b", "c"}, {"a", "b-c"}, {"a:b", "c"}, {"a", "b:c"}, {"a", "b%3Ac"}, {"a:b/c", "d"}, {"a", "b/c:d"}} {
		g := New(Options{Runtime: gatewaytest.New(), MQTT: &MQTT{ClientID: pair[0]}})
		id := g.brokerOptions(pair[1]).ClientID
		if seen[id] {
			t.Errorf("%q are known as %q, as others are", pair, id)
		}
		seen[id] = true
	}
}

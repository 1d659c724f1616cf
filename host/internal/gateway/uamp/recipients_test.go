package uamp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// broaden lets the lab write to several agents at once.
func (h *hive) broaden() {
	lab := gatewaytest.Realm("default", "lab")
	lab.May = gateway.Rights{gateway.MayAsk, gateway.MayTell, gateway.MayBroadcast}
	h.rt.Admit("lab-token", lab)
}

// newAskOf is an ask of several agents.
func newAskOf(agents ...string) envelope.Envelope {
	e := newAsk(agents[0], "go")
	for _, name := range agents[1:] {
		e.To = append(e.To, agentDID(name))
	}
	return e
}

// TestSeveralRecipients (U-069, U-056): the answers of several agents are one sequence on one
// stream, each delta with its agent. One that has ended is read while the others work, the
// failure of one is its own, and the last delta comes when all have ended. Each binding reads
// the same bytes from each delta on, and a repeat asks no agent again.
func TestSeveralRecipients(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	h.broaden()
	var turns atomic.Int32
	more := make(chan struct{})
	h.expose("fast", func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		turns.Add(1)
		turn.Chunk("quick")
		return gateway.Answer{Body: "4", At: time.Unix(1e9, 0)}
	})
	h.expose("late", func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		turns.Add(1)
		<-more
		turn.Chunk("at last")
		return gateway.Answer{Outcome: gateway.Failed, Body: "it failed"}
	})
	e := newAskOf("late", "fast")
	at := h.take(t, e).location
	next, end := h.open(t, at)
	var first []string
	for range 2 {
		line, _ := next()
		first = append(first, line)
	}
	end()
	close(more)
	whole := h.read(t, at)
	fast, late := agentDID("fast"), agentDID("late")
	want := []struct{ kind, payload string }{
		{"chunk", fmt.Sprintf(`{"from":%q,"text":"quick"}`, fast)},
		{"progress", fmt.Sprintf(`{"done":{"answer":4,"type":"application/json"},"from":%q,"pct":50}`, fast)},
		{"chunk", fmt.Sprintf(`{"from":%q,"text":"at last"}`, late)},
		{"progress", fmt.Sprintf(`{"error":{"code":"5.00","message":"it failed","retry":true},"from":%q,"pct":100}`, late)},
		{"done", fmt.Sprintf(`{"answer":[{"from":%q,"type":"done"},{"from":%q,"type":"error"}],"sha256":"747839d60849bc3b0214604ce265c50c876a24535ebe32e03e3755ad6167c81a","size":12,"type":"application/json"}`, fast, late)},
	}
	if len(whole) != len(want) || !slices.Equal(first, whole[:2]) {
		t.Fatalf("read %q and then %q", first, whole)
	}
	for i, w := range want {
		if d := delta(t, whole[i]); string(d.Type) != w.kind || string(d.Payload) != w.payload || d.Seq != i {
			t.Errorf("delta %d is %s, want %s %s", i, whole[i], w.kind, w.payload)
		}
	}
	client, ctx := h.overGRPC(t, "lab-token")
	for from := range whole {
		if got := h.read(t, fmt.Sprintf("%s?from=%d", at, from)); !slices.Equal(got, whole[from:]) {
			t.Errorf("from %d it is %q", from, got)
		}
		list, err := subscribe(t, client, ctx, "str-"+string(e.ID), from)
		var got []string
		for _, d := range list {
			got = append(got, string(d.GetJson()))
		}
		if err != nil || !slices.Equal(got, whole[from:]) {
			t.Errorf("over gRPC from %d it is %q, %v", from, got, err)
		}
	}
	p := h.dial(t, "lab-token")
	p.send(signedBy(t, h.own, e)) // a repeat
	if m := p.read(); !strings.Contains(m.Body.Content, "accepted") {
		t.Fatal(m.text)
	}
	for i := range whole {
		if m := p.read(); m.text != whole[i] {
			t.Errorf("over a WebSocket delta %d is %s", i, m.text)
		}
	}
	if n := turns.Load(); n != 2 {
		t.Errorf("%d turns", n)
	}
}

// TestSeveralCancelled (U-069, U-085): a cancel reaches each agent that has not answered, also
// after an attempt that was cut off between them. A stream in which no agent has answered ends
// as its last agent's.
func TestSeveralCancelled(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	h.broaden()
	h.expose("other", func(ctx context.Context, _ *gatewaytest.Turn) gateway.Answer {
		<-ctx.Done()
		return gateway.Answer{Outcome: gateway.Cancelled}
	})
	e := newAskOf("slow", "other", "calc")
	e.Stream = "mine"
	at := h.take(t, e).location
	next := newAsk("calc", "x")
	next.Stream = "mine"
	h.refused(t, "the stream of agents that work", h.send(t, next), envelope.MissingSeq)
	first, err := h.rt.Find(t.Context(), gatewaytest.Realm("default", "lab"), gateway.OtherID(string(e.ID), "other"))
	if err != nil || first.Agent != "other" {
		t.Fatalf("%+v, %v", first, err)
	}
	if err := h.rt.Cancel(t.Context(), gatewaytest.Realm("default", "lab"), first.ID, ""); err != nil {
		t.Fatal(err)
	}
	c := newAsk("calc", "")
	c.Intent, c.ReplyTo = envelope.Cancel, e.ID
	h.rt.FailNext("Cancel", errors.New("the store fails"))
	h.refusedBy(t, "a store that fails", h.send(t, c), envelope.Internal, hostDID, agentDID("calc"))
	for range 2 { // what is over stays
		c.ID = envelope.NewID()
		h.take(t, c)
	}
	lines := h.read(t, at)
	if n := len(lines); n != 4 || delta(t, lines[3]).Type != envelope.DeltaDone || strings.Count(lines[3], `"cancel"`) != 2 || !strings.Contains(lines[3], `"done"`) {
		t.Errorf("%q", lines)
	}
	e = newAskOf("slow", "other")
	at = h.take(t, e).location
	c.ID, c.ReplyTo = envelope.NewID(), e.ID
	h.take(t, c)
	if lines = h.read(t, at); len(lines) != 3 || delta(t, lines[2]).Type != envelope.DeltaCancel {
		t.Errorf("%q", lines)
	}
}

// TestSeveralLimits (U-069): an ask names 16 agents, and a subscription one. All of them are
// taken or none.
func TestSeveralLimits(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	h.broaden()
	var names []string
	for i := range 17 {
		names = append(names, fmt.Sprintf("a%02d", i))
		h.expose(names[i], gatewaytest.Echo)
	}
	h.refusedBy(t, "17 agents", h.send(t, newAskOf(names...)), envelope.Unsupported, agentDID("a00"))
	if lines := h.read(t, h.take(t, newAskOf(names[:16]...)).location); len(lines) != 17 {
		t.Errorf("%d deltas", len(lines))
	}
	e := newAskOf(names[:2]...)
	e.Intent = envelope.Subscribe
	h.refusedBy(t, "a subscription to two", h.send(t, e), envelope.Unsupported, agentDID("a00"))
	for _, e := range []envelope.Envelope{e, newAskOf(names...)} {
		if r := h.call(t, http.MethodGet, "/v1/stream/str-"+string(e.ID), "lab-token", ""); r.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", e.Intent, r.status, r.text)
		}
	}
}

// TestSeveralConfirmed (U-069, U-089): the answer of each agent is also sent as an envelope of its
// own, which has no hash: the stream's last delta is not of one answer.
func TestSeveralConfirmed(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	o.broaden()
	o.expose("other", gatewaytest.Echo)
	e := newAskOf("calc", "other")
	stream := o.take(t, e).location
	if lines := o.read(t, stream); len(lines) != 3 {
		t.Fatalf("%q", lines)
	}
	for _, agent := range []string{"calc", "other"} {
		d := response(e)
		if agent == "other" {
			d = outgoing("response of other", mail.Response, "x", "")
			d.Answers = gateway.OtherID(swarm.RemoteKey("lab", string(e.ID)), agent)
		}
		o.carry(t, agent, d, gateway.Taken)
		got, _ := o.lab.take()
		if len(got) != 1 {
			t.Fatalf("%s: %d envelopes", agent, len(got))
		}
		if sent := got[0]; sent.Intent != envelope.Confirm || sent.ReplyTo != e.ID || sent.From != agentDID(agent) || "/v1/stream/"+sent.Stream != stream || sent.Body.Content != "go" || sent.Ext["x-answer-sha256"] != nil {
			t.Errorf("%s: %+v", agent, sent.Envelope)
		}
	}
}

package acp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/state"
)

func (s *site) dial(t *testing.T) *acptest.Socket {
	t.Helper()
	c, err := acptest.Dial(t.Context(), s.server.URL, s.Token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func exchange(t *testing.T, c *acptest.Socket, text string) acptest.Message {
	t.Helper()
	if err := c.Send(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	m, err := c.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// the same messages over a WebSocket, for several agents:
// answers, ERRORs, acknowledgements and progress where they were asked for.
func TestSocket(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expose("works", func(_ context.Context, t *gatewaytest.Turn) gateway.Answer {
		t.Progress("half", 0.5)
		return gateway.Answer{Body: "whole"}
	})
	c := s.dial(t)
	first := exchange(t, c, document)
	if first.Header.Type != "RESPONSE" || first.Header.ReplyTo != "msg123" || first.Header.Receiver != "agentA" {
		t.Errorf("got %+v", first)
	}
	if again := exchange(t, c, document); again != first {
		t.Errorf("the repeat got %+v", again)
	}
	if over := s.sendText(t, document); over.Text != first.Text() {
		t.Errorf("over HTTP it is %s, not %s", over.Text, first.Text())
	}
	if m := exchange(t, c, acptest.New("QUERY", "agentB", "calc", "7").Text()); m.Header.Type != "INFORM" || m.Header.Receiver != "agentB" {
		t.Errorf("another agent got %+v", m)
	}
	if m := exchange(t, c, "hello"); m.Header.Type != "ERROR" || !strings.Contains(m.Body, "malformed") {
		t.Errorf("no message got %+v", m)
	}
	if m := exchange(t, c, acptest.New("REQUEST", "mallory", "calc", "7").Text()); m.Header.Type != "ERROR" || !strings.Contains(m.Body, "forbidden") {
		t.Errorf("a foreign sender got %+v", m)
	}
	told := acptest.New("INFORM", "agentA", "calc", "news")
	for _, kind := range []string{"ERROR", "ACKNOWLEDGE"} { // get nothing, whatever they ask for
		quiet := acptest.New(kind, "agentA", "calc", "x")
		if err := c.Send(t.Context(), strings.Replace(quiet.Text(), `"header":{`, `"header":{"x_ack":"requested",`, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if m := exchange(t, c, strings.Replace(told.Text(), `"header":{`, `"header":{"x_ack":"requested",`, 1)); m.Header.Type != "ACKNOWLEDGE" || m.Header.ReplyTo != told.Header.ID {
		t.Errorf("an INFORM got %+v", m)
	}
	q := acptest.New("REQUEST", "agentA", "works", "x")
	m := exchange(t, c, strings.Replace(q.Text(), `"header":{`, `"header":{"x_progress":"inform",`, 1))
	if m.Header.Type != "INFORM" || m.Header.ReplyTo != q.Header.ID || m.Body != "half" || m.Header.Progress != "partial" {
		t.Errorf("progress is %+v", m)
	}
	if m, err := c.Read(t.Context()); err != nil || m.Header.Type != "RESPONSE" || m.Body != "whole" {
		t.Errorf("after progress %+v, %v", m, err)
	}
}

// A socket ends with its token, with too many messages that are none, and when the host
// stops; a realm has so many of them.
func TestSocketEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *acp.Options) { o.Sessions = 2 })
	first, second := s.dial(t), s.dial(t)
	exchange(t, first, document)
	exchange(t, second, document)
	if n := s.g.Health().Connections; n != 2 {
		t.Errorf("%d connections", n)
	}
	third := s.dial(t)
	if _, err := third.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "too many connections") {
		t.Errorf("one too many: %v", err)
	}
	for range 16 {
		if m := exchange(t, first, "nonsense"); m.Header.Type != "ERROR" {
			t.Errorf("got %+v", m)
		}
	}
	if _, err := first.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "messages that are none") {
		t.Errorf("after nonsense: %v", err)
	}
	s.admit("other-token", "other", "agent*")
	s.Token = "other-token"
	other := s.dial(t)
	exchange(t, other, document)
	s.rt.Revoke("acme-token")
	if _, err := second.Read(t.Context()); err == nil {
		t.Error("a socket outlives its token")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	stopped := make(chan error, 1)
	go func() { stopped <- s.g.Run(ctx) }()
	if _, err := other.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "the host stops") {
		t.Errorf("when the host stops: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// What a reload takes from a partner is taken from his open sockets, too.
func TestSocketAfterAReload(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	c := gatewaytest.Realm("default", "acme")
	c.May = gateway.Rights{gateway.MayAsk, gateway.MayRelay}
	s.rt.Admit("acme-token", c)
	open := s.dial(t)
	relayed := func() acptest.Message {
		return exchange(t, open, acptest.New("REQUEST", "agentA", "agentB", "x").Text())
	}
	for range 2 { // what one agent of a socket writes to another one comes once
		if m := relayed(); m.Header.Type != "REQUEST" || m.Header.Receiver != "agentB" {
			t.Fatalf("got %+v", m)
		}
	}
	kept, err := s.rt.State().List(t.Context(), state.Key{Tenant: "default", Gateway: "acp", Realm: "acme", Kind: "mailbox"}, state.Key{}, 10)
	if err != nil || len(kept) > 0 {
		t.Errorf("%d messages are in the mailbox, too; %v", len(kept), err)
	}
	c.May = gateway.Rights{gateway.MayAsk}
	s.rt.Admit("acme-token", c)
	if m := relayed(); m.Header.Type != "ERROR" {
		t.Errorf("without the right it got %+v", m)
	}
}

// One connection has at most 64 questions that wait; one more is refused, and the
// connection goes on.
func TestSocketIsBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	c := s.dial(t)
	for i := range 65 {
		q := acptest.New("REQUEST", "agentA", "slow", fmt.Sprint(i))
		if err := c.Send(t.Context(), q.Text()); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := c.Read(t.Context()); err != nil || m.Header.Type != "ERROR" || !strings.HasPrefix(m.Body, "busy: ") {
		t.Errorf("the 65th got %+v, %v", m, err)
	}
	close(s.release)
	for range 64 {
		if m, err := c.Read(t.Context()); err != nil || m.Header.Type != "RESPONSE" {
			t.Fatalf("got %+v, %v", m, err)
		}
	}
	exchange(t, c, document)
}

// A message above max_body ends its socket and says why. What was asked on it is answered on
// the next, under its id.
func TestSocketTooLarge(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *acp.Options) { o.MaxBody = 4 << 10 })
	c := s.dial(t)
	q := acptest.New("REQUEST", "agentA", "slow", "x")
	large := acptest.New("REQUEST", "agentA", "calc", strings.Repeat("x", 4<<10))
	for _, m := range []acptest.Message{q, large} {
		if err := c.Send(t.Context(), m.Text()); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := c.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "StatusMessageTooBig") {
		t.Errorf("a large message got %+v, %v", m, err)
	}
	if events := s.rt.Events(); !strings.Contains(events[len(events)-1].Reason, "max_body") {
		t.Errorf("recorded %+v", events)
	}
	close(s.release)
	if m := exchange(t, s.dial(t), q.Text()); m.Header.Type != "RESPONSE" || m.Header.ReplyTo != q.Header.ID {
		t.Errorf("what was asked before got %+v", m)
	}
}

// A flood of messages between two agents of one socket ends, though each waits for the reader
// of that socket: what is not written to it is in the mailbox, and all of it is there once.
func TestSocketRelaysAFlood(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	c := gatewaytest.Realm("default", "acme")
	c.May = gateway.Rights{gateway.MayAsk, gateway.MayTell, gateway.MayRelay}
	s.rt.Admit("acme-token", c)
	open := s.dial(t)
	if m := exchange(t, open, acptest.New("REQUEST", "agentB", "calc", "7").Text()); m.Header.Type != "RESPONSE" {
		t.Fatalf("got %+v", m)
	}
	const flood = 300
	for i := range flood {
		if err := open.Send(t.Context(), acptest.New("INFORM", "agentA", "agentB", fmt.Sprint(i)).Text()); err != nil {
			t.Fatal(err)
		}
	}
	last := acptest.New("REQUEST", "agentA", "calc", "8")
	if err := open.Send(t.Context(), last.Text()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	kept, err := []state.Record(nil), error(nil)
	for answered := false; !answered || len(seen)+len(kept) < flood; {
		m, err := open.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if m.Header.ReplyTo == last.Header.ID {
			answered = true
		} else {
			seen[m.Body]++
		}
		if kept, err = s.rt.State().List(t.Context(), state.Key{Tenant: "default", Gateway: "acp", Realm: "acme", Kind: "mailbox"}, state.Key{}, flood); err != nil {
			t.Fatal(err)
		}
	}
	for body, n := range seen {
		if n > 1 {
			t.Errorf("%s came %d times", body, n)
		}
	}
	if len(seen)+len(kept) != flood || err != nil || len(seen) == 0 {
		t.Errorf("%d came and %d are kept, of %d", len(seen), len(kept), flood)
	}
}

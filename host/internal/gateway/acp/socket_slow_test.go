package acp_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/gatewaytest"
)

// loading is a runtime that loads each answer, as a store does.
type loading struct {
	gateway.Runtime
	waited atomic.Int32
	isGone bool // the exchange, once it was answered
}

func (l *loading) Wait(ctx context.Context, x gateway.Exchange) (gateway.Answer, error) {
	a, err := l.Runtime.Wait(ctx, x)
	a.Body = strings.Clone(a.Body)
	l.waited.Add(1)
	return a, err
}

func (l *loading) Look(ctx context.Context, x gateway.Exchange) (gateway.Answer, bool, error) {
	if l.isGone {
		return gateway.Answer{}, false, nil
	}
	a, ok, err := l.Runtime.Look(ctx, x)
	a.Body = strings.Clone(a.Body)
	return a, ok, err
}

// TestSocketSlowReader: a peer that asks as often as it may and reads no answer holds a
// few of the answers in memory, and not all; others get theirs. It is not parallel: it looks at
// the whole process.
func TestSocketSlowReader(t *testing.T) {
	const questions, size, most = 64, 900 << 10, 24 << 20
	rt := &loading{}
	s := newSite(t, func(o *acp.Options) { rt.Runtime = o.Runtime; o.Runtime = rt })
	large := strings.Repeat("x", size)
	s.expose("large", func(context.Context, *gatewaytest.Turn) gateway.Answer { return gateway.Answer{Body: large} })
	conn, _, err := websocket.Dial(t.Context(), strings.Replace(s.server.URL, "http", "ws", 1)+"/acp/v1/ws", &websocket.DialOptions{
		HTTPClient: s.server.Client(), HTTPHeader: http.Header{"Authorization": {"Bearer " + s.Token}}, Subprotocols: []string{"acp.v1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	before, _ := gatewaytest.Footprint()
	for range questions {
		q := acptest.New("REQUEST", "agentA", "large", "7")
		q.Header.ContentType = "text/plain"
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(q.Text())); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(time.Minute); rt.waited.Load() < questions; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d questions are answered", rt.waited.Load(), questions)
		}
	}
	if r := s.send(t, acptest.New("REQUEST", "agentB", "calc", "7")); r.Status != http.StatusOK {
		t.Errorf("another agent's question gets %d %s", r.Status, r.Text)
	}
	after, _ := gatewaytest.Footprint()
	if after-before > most {
		t.Errorf("a peer that reads nothing holds %d bytes", after-before)
	}
	t.Logf("%d questions with answers of %d bytes: %d bytes", questions, size, after-before)
}

// TestSocketAnswerGone: a long answer that is gone when the socket may write it, as with the
// data of its tenant, is an ERROR and no empty RESPONSE.
func TestSocketAnswerGone(t *testing.T) {
	t.Parallel()
	rt := &loading{isGone: true}
	s := newSite(t, func(o *acp.Options) { rt.Runtime = o.Runtime; o.Runtime = rt })
	s.expose("large", func(context.Context, *gatewaytest.Turn) gateway.Answer {
		return gateway.Answer{Body: strings.Repeat("x", 100<<10)}
	})
	socket, err := acptest.Dial(t.Context(), s.server.URL, s.Token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(socket.Close)
	q := acptest.New("REQUEST", "agentA", "large", "7")
	if err := socket.Send(t.Context(), q.Text()); err != nil {
		t.Fatal(err)
	}
	if m, err := socket.Read(t.Context()); err != nil || m.Header.Type != "ERROR" || m.Header.ReplyTo != q.Header.ID || !strings.Contains(m.Body, "are gone") {
		t.Errorf("got %+v, %v", m, err)
	}
}

package uamp_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp"
	"skep/host/internal/gateway/uamp/envelope"
)

// peer is the caller's side of a WebSocket, by the document.
type peer struct {
	t    *testing.T
	conn *websocket.Conn
	rest []byte
}

func (h *hive) dial(t *testing.T, token string) *peer {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), h.server.URL+"/uamp/1/ws", &websocket.DialOptions{
		HTTPClient: h.client, Subprotocols: []string{"uamp.1"}, HTTPHeader: http.Header{"Authorization": {"Bearer " + token}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &peer{t: t, conn: conn}
}

func framed(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

func (p *peer) send(text string) {
	p.t.Helper()
	if err := p.conn.Write(p.t.Context(), websocket.MessageBinary, framed(text)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) ack(stream string, seq int) {
	p.t.Helper()
	p.send(fmt.Sprintf(`{"delta_seq":%d,"stream_id":%q,"ts":"2025-08-06T17:00:00Z","type":"progress","payload":{"ack":%d}}`, max(0, seq), stream, seq))
}

// told is what a frame of the host has.
type told struct {
	Intent  string
	From    string
	ReplyTo string `json:"reply_to"`
	Sig     string
	Body    struct{ Content string }
	Seq     *int   `json:"delta_seq"`
	Stream  string `json:"stream_id"`
	Type    string
	Payload json.RawMessage
	text    string
}

// next reads a frame.
func (p *peer) next() (m told, err error) {
	for len(p.rest) < 4 || len(p.rest) < 4+int(binary.BigEndian.Uint32(p.rest)) {
		_, message, err := p.conn.Read(p.t.Context())
		if err != nil {
			return m, err
		}
		p.rest = append(p.rest, message...)
	}
	n := 4 + int(binary.BigEndian.Uint32(p.rest))
	m.text = string(p.rest[4:n])
	p.rest = p.rest[n:]
	return m, json.Unmarshal([]byte(m.text), &m)
}

func (p *peer) read() told {
	p.t.Helper()
	m, err := p.next()
	if err != nil {
		p.t.Fatal(err)
	}
	return m
}

// TestSocket (U-054, U-056, U-064, D-U10): envelopes come over a WebSocket, each is told to
// be kept, and its stream follows; a repeat has the same deltas, and so has a reader over
// HTTP.
func TestSocket(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	p := h.dial(t, "lab-token")
	e := newAsk("calc", "2+2")
	text := signedBy(t, h.own, e)
	var before string
	for n := range 2 {
		p.send(text)
		if m := p.read(); m.Intent != "progress" || m.ReplyTo != string(e.ID) && m.ReplyTo != e.ID.String() || m.Sig == "" || m.From != agentDID("calc") || !strings.Contains(m.Body.Content, "accepted") {
			t.Fatalf("%d: a receipt is %s", n, m.text)
		}
		m := p.read()
		if m.Type != "done" || m.Seq == nil || *m.Seq != 0 || !strings.Contains(string(m.Payload), "2+2") {
			t.Fatalf("%d: the answer is %s", n, m.text)
		}
		if n > 0 && m.text != before {
			t.Errorf("again %s, not %s", m.text, before)
		}
		before = m.text
	}
	lines := h.read(t, "/v1/stream/str-"+string(e.ID))
	if !slices.Contains(lines, before) {
		t.Errorf("over HTTP it is %q, not %s", lines, before)
	}
	inform := newAsk("calc", "news")
	inform.Intent = envelope.Inform
	p.send(signedBy(t, h.own, inform))
	if m := p.read(); m.Intent != "progress" || !strings.Contains(m.Body.Content, "accepted") {
		t.Errorf("what is told gets %s", m.text)
	}
	bad := newAsk("nobody", "x")
	p.send(signedBy(t, h.own, bad))
	if m := p.read(); m.Intent != "error" || m.Sig == "" || !strings.Contains(m.Body.Content, "4.04") {
		t.Errorf("for nobody: %s", m.text)
	}
	if n := h.g.Health().Connections; n != 1 {
		t.Errorf("%d connections", n)
	}
}

// TestSocketWindow (U-056, U-061, U-062, U-064, V-U37): no more than the window is sent
// without acknowledgement; a stream goes on where another binding left it.
func TestSocketWindow(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	h.expose("talks", func(_ context.Context, t *gatewaytest.Turn) gateway.Answer {
		for n := range 6 {
			t.Chunk(fmt.Sprint(n))
		}
		return gateway.Answer{Body: "end"}
	})
	e := newAsk("talks", "go")
	e.Window = 2
	p := h.dial(t, "lab-token")
	p.send(signedBy(t, h.own, e))
	p.read() // the receipt
	name := "str-" + string(e.ID)
	for n := range 2 {
		if m := p.read(); m.Seq == nil || *m.Seq != n {
			t.Fatalf("delta %d is %s", n, m.text)
		}
	}
	p.ack(name, 5) // not sent
	if m := p.read(); m.Type != "error" || !strings.Contains(string(m.Payload), "4.09") {
		t.Fatalf("an acknowledgement of what was not sent gets %s", m.text)
	}
	p.ack(name, 0)
	if m := p.read(); m.Seq == nil || *m.Seq != 2 {
		t.Fatalf("after an acknowledgement comes %s", m.text)
	}
	_ = p.conn.CloseNow()
	on := h.dial(t, "lab-token")
	on.ack(name, 2)
	for n := 3; n < 7; n++ {
		m := on.read()
		if m.Seq == nil || *m.Seq != n || (n == 6) != (m.Type == "done") {
			t.Fatalf("read on: delta %d is %s", n, m.text)
		}
		on.ack(name, n)
	}
	if lines := h.read(t, "/v1/stream/"+name+"?from=6"); !strings.Contains(strings.Join(lines, "\n"), `"type":"done"`) {
		t.Errorf("over HTTP the rest is %q", lines)
	}
	on.ack("str-nothing", 0)
	if m := on.read(); m.Type != "error" || !strings.Contains(string(m.Payload), "4.04") {
		t.Errorf("an unknown stream gets %s", m.text)
	}
}

// TestSocketEnds: users and strangers get no socket, a realm has so many; what is no frame
// ends one with a reason, and so do a partner that is let in no more and a host that stops.
func TestSocketEnds(t *testing.T) {
	t.Parallel()
	h := newHive(t, func(o *uamp.Options) { o.Sessions, o.MaxBody, o.Strict = 3, 4<<10, true })
	for token, status := range map[string]int{"user-token": http.StatusForbidden, "other": http.StatusUnauthorized} {
		if r := h.call(t, http.MethodGet, "/uamp/1/ws", token, ""); r.status != status {
			t.Errorf("%s: %d %s", token, r.status, r.text)
		}
	}
	for name, c := range map[string]struct {
		kind    websocket.MessageType
		message []byte
		want    string
	}{
		"a text":            {websocket.MessageText, []byte(`{}`), "binary message"},
		"a large frame":     {websocket.MessageBinary, binary.BigEndian.AppendUint32(nil, 5<<10), "too large"},
		"a length reversed": {websocket.MessageBinary, binary.LittleEndian.AppendUint32(nil, 16), "little-endian"},
		"no envelope":       {websocket.MessageBinary, framed(`{"uamp":"1.0"}`), "StatusInvalidFramePayloadData"},
		"no JSON":           {websocket.MessageBinary, framed(`{`), "StatusInvalidFramePayloadData"},
	} {
		p := h.dial(t, "lab-token")
		if err := p.conn.Write(t.Context(), c.kind, c.message); err != nil {
			t.Fatal(err)
		}
		if m, err := p.next(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s, %v", name, m.text, err)
		}
		_ = p.conn.CloseNow()
	}
	eventually(t, func() bool { return h.g.Health().Connections == 0 })
	first, second, third := h.dial(t, "lab-token"), h.dial(t, "lab-token"), h.dial(t, "lab-token")
	_, _ = second, third
	eventually(t, func() bool { return h.g.Health().Connections == 3 })
	if _, err := h.dial(t, "lab-token").next(); err == nil || !strings.Contains(err.Error(), "sessions of [gateways.uamp]") {
		t.Errorf("one too many: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := h.g.Run(ctx); err != nil {
		t.Error(err)
	}
	if _, err := first.next(); err == nil || !strings.Contains(err.Error(), "the host stops") {
		t.Errorf("when the host stops: %v", err)
	}
}

// TestSocketRevoked: a socket ends with its token, and what it has asked is answered on the
// next.
func TestSocketRevoked(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	p := h.dial(t, "lab-token")
	e := newAsk("slow", "x")
	p.send(signedBy(t, h.own, e))
	p.read() // the receipt
	h.rt.Revoke("lab-token")
	if m, err := p.next(); err == nil {
		t.Fatalf("a socket outlives its token: %s", m.text)
	}
	lab := gatewaytest.Realm("default", "lab")
	lab.May = gateway.Rights{gateway.MayAsk, gateway.MayTell}
	h.rt.Admit("new-token", lab)
	close(h.release)
	on := h.dial(t, "new-token")
	on.ack("str-"+string(e.ID), -1)
	if m := on.read(); m.Type != "done" || !strings.Contains(string(m.Payload), "done") {
		t.Errorf("on the next connection: %s", m.text)
	}
}

func eventually(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never")
		}
	}
}

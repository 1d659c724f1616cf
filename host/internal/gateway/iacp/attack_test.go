package iacp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
)

// impatient are times after which a peer that says nothing is gone soon.
func impatient(o *iacp.Options) {
	o.FirstTime, o.FrameTime = 100*time.Millisecond, 100*time.Millisecond
}

// ends reads a connection to its end and returns what came.
func ends(t *testing.T, c net.Conn) string {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	got, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection stays open; it has brought %q", got)
	}
	return string(got)
}

func frame(text string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) + text
}

// TestBytesBeforeTheHandshake (V-I04 to V-I07, V-I09, V-I10, I-051, I-062): what is no message, or
// is none in time, ends the connection with its reason, where one can be read, and nothing is
// accepted.
func TestBytesBeforeTheHandshake(t *testing.T) {
	t.Parallel()
	patient := newSite(t, func(o *iacp.Options) { o.AuthTime = 150 * time.Millisecond })
	silent := newSite(t, impatient) // on a busy machine a word may come too late
	shake := iacptest.New("handshake", "depot-1", "", map[string]any{"versions": []string{"1.0"}})
	const late = "no whole message came within 0.1 s"
	for name, c := range map[string]struct{ send, want string }{
		"nothing, a half-open socket": {"", late},
		"a part of a length":          {"\x00\x00", late},
		"a length, and nothing":       {"\x00\x00\x10\x00", late},
		"a handshake, and nothing":    {frame(string(shake.Text())), "no credential came within 0.15 s after the handshake"},
		"length 0":                    {"\x00\x00\x00\x00", "the frame is empty"},
		"length 2^32-1":               {"\xff\xff\xff\xff", "the frame is too large: 4294967295 bytes, at most 16777216"},
		"one byte too many":           {"\x01\x00\x00\x01", "the frame is too large: 16777217 bytes"},
		"TLS":                         {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "speaks TLS, and IaCP is without it here"},
		"HTTP":                        {"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", `{"status":"ok","protocol":"iacp/1.0"}`},
		"HTTP/2":                      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 200 OK"},
		"a little-endian length":      {"\x02\x00\x00\x00{}", "little-endian"},
		"noise":                       {"\xde\xad\xbe\xef" + strings.Repeat("\xde\xad", 500), "too large"},
		"no JSON":                     {frame("hello"), "INVALID_MESSAGE_FORMAT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := patient
			if c.want == late {
				s = silent
			}
			c1 := s.raw(t)
			if _, err := io.WriteString(c1, c.send); err != nil {
				t.Fatal(err)
			}
			if got := ends(t, c1); !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	t.Cleanup(func() {
		if n := patient.g.Health().Connections + silent.g.Health().Connections; n != 0 {
			t.Errorf("%d connections are open", n)
		}
	})
}

// TestSlowFrames (V-I45): a frame that comes byte by byte ends its connection when its time is
// over, before and after the handshake, however often a byte comes.
func TestSlowFrames(t *testing.T) {
	t.Parallel()
	patient := newSite(t, func(o *iacp.Options) { o.FrameTime = 100 * time.Millisecond })
	for name, c := range map[string]net.Conn{"before": newSite(t, impatient).raw(t), "after": patient.dial(t).Conn} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			over := make(chan string)
			go func() { over <- ends(t, c) }()
			if _, err := io.WriteString(c, "\x00\x00\x10\x00"); err != nil {
				t.Fatal(err)
			}
			for {
				select {
				case <-over:
					return
				case <-time.After(10 * time.Millisecond):
					_, _ = io.WriteString(c, " ") // fails when it has ended
				}
			}
		})
	}
}

// TestGarbageAfterTheHandshake (I-060): bytes that are no frame end a connection with the
// reason, and what was taken before has its answer on the next one.
func TestGarbageAfterTheHandshake(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.dial(t, "ack")
	m := task("kept")
	exchange(t, c, m, "ack")
	if _, err := c.Write(bytes.Repeat([]byte{0xde}, 1000)); err != nil {
		t.Fatal(err)
	}
	if got := ends(t, c.Conn); !strings.Contains(got, "the frame is too large") {
		t.Errorf("got %q", got)
	}
	if got := exchange(t, s.dial(t), m, "task_response"); got.Payload["status"] != "completed" {
		t.Errorf("the repeat has %s", got.Raw)
	}
}

// TestLargeFrame (I-052, I-060): a frame above the limit is refused with its reason and read
// past, so that the connection goes on; one of more than four times the limit ends it.
func TestLargeFrame(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *iacp.Options) { o.MaxBody = 10_000 })
	c := s.dial(t)
	for _, size := range []int{10_001, 40_000} {
		go func() { _ = c.Send(bytes.Repeat([]byte(" "), size)) }()
		got := read(t, c, "error_response")
		if text := fmt.Sprint(got.Payload["error_message"], got.Payload["details"]); !strings.Contains(text, fmt.Sprintf("%d bytes, at most 10000", size)) || !strings.Contains(text, "too_large") {
			t.Errorf("got %s", got.Raw)
		}
		exchange(t, c, task("and on"), "task_response")
	}
	go func() { _ = c.Send(bytes.Repeat([]byte(" "), 40_001)) }()
	read(t, c, "error_response")
	ends(t, c.Conn)
}

// TestOneIdentityTwice (I-059, I-027): two connections claim one agent: the newer one gets its
// messages, and when that is lost the older one does, under the same id; each gets the answers
// to what it has asked itself.
func TestOneIdentityTwice(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	older, newer := s.dial(t), s.dial(t)
	for _, c := range []*iacptest.Conn{older, newer} {
		exchange(t, c, iacptest.New("agent_register", "depot-1", "", map[string]any{"agent_info": map[string]any{"agent_id": "depot-1"}}), "agent_register_response")
	}
	for _, c := range []*iacptest.Conn{older, newer} {
		m := task("mine")
		if got := exchange(t, c, m, "task_response"); got.Parent != m.ID {
			t.Errorf("got %s", got.Raw)
		}
	}
	p, _ := s.rt.Partner("depot")
	d := delivery(uuid.NewString())
	first := make(chan gateway.Carried, 1)
	go func() { first <- s.g.Carry(t.Context(), p, d) }()
	m := read(t, newer, "task_request")
	_ = newer.Close()
	if got := <-first; got.State != gateway.Unanswered {
		t.Fatalf("the connection is lost: %+v", got)
	}
	again := make(chan gateway.Carried, 1)
	go func() { again <- s.g.Carry(t.Context(), p, d) }()
	repeat := read(t, older, "task_request")
	if repeat.ID != m.ID {
		t.Errorf("%s, then %s", m.Raw, repeat.Raw)
	}
	if err := older.Send(repeat.Reply("task_response", map[string]any{"status": "completed"}).Text()); err != nil {
		t.Fatal(err)
	}
	if got := <-again; got.State != gateway.Taken {
		t.Errorf("carried %+v", got)
	}
}

// gated is a runtime that takes messages when it may, and notes their order.
type gated struct {
	gateway.Runtime
	gate  chan struct{}
	order chan string
}

func (g gated) Ask(ctx context.Context, c gateway.Caller, a gateway.Ask) (gateway.Exchange, error) {
	<-g.gate
	g.order <- a.Body
	return g.Runtime.Ask(ctx, c, a)
}

// TestPriority (I-002, D-I7, V-I22): what is urgent overtakes a hundred messages that wait in
// the gateway, and messages of one priority keep their order; one without a priority is normal.
func TestPriority(t *testing.T) {
	t.Parallel()
	g := gated{gate: make(chan struct{}), order: make(chan string, 200)}
	s := newSite(t, func(o *iacp.Options) { g.Runtime, o.Runtime = o.Runtime, &g })
	c := s.dial(t)
	send := func(text, priority string) {
		m := iacptest.New("task_request", "depot-1", "echo", map[string]any{"task_type": "mail.message", "parameters": map[string]any{"body": text}})
		if priority != "" {
			m.Metadata = map[string]any{"priority": priority}
		}
		if err := c.Send(m.Text()); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 100 {
		send(fmt.Sprint(n), []string{"normal", ""}[n%2])
	}
	send("low", "low")
	send("high", "high")
	send("urgent", "urgent")
	exchange(t, c, iacptest.New("heartbeat", "depot-1", "", map[string]any{}), "heartbeat_ack") // all before it are read
	close(g.gate)
	var got []string
	for range 103 {
		if text := <-g.order; text != "0" { // which may be taken before the others are there
			got = append(got, text)
		}
	}
	want := []string{"urgent", "high"}
	for n := 1; n < 100; n++ {
		want = append(want, fmt.Sprint(n))
	}
	if !slices.Equal(got, append(want, "low")) {
		t.Errorf("the order is %q", got)
	}
}

// TestManyMessages (I-059, V-I46): ten thousand messages of a connection are taken in their
// order, and each is acknowledged; those after a lost connection are sent again, and none comes
// twice.
func TestManyMessages(t *testing.T) {
	t.Parallel()
	const n = 10_000
	order := make(chan string, n)
	open := make(chan struct{})
	close(open)
	g := gated{gate: open, order: order}
	s := newSite(t, func(o *iacp.Options) { g.Runtime, o.Runtime = o.Runtime, &g })
	list := make([]iacptest.Message, n)
	for i := range list {
		list[i] = iacptest.New("context_share", "depot-1", "echo", map[string]any{"n": i})
	}
	acked := map[string]bool{}
	for _, to := range []int{n / 3, n} { // the connection is lost between these
		c := s.dial(t, "ack")
		var again []iacptest.Message
		for _, m := range list[:to] {
			if !acked[m.ID] {
				again = append(again, m)
			}
		}
		go func() {
			for _, m := range again {
				if c.Send(m.Text()) != nil {
					return
				}
			}
		}()
		for range again {
			acked[read(t, c, "ack").Parent] = true
		}
		_ = c.Close()
	}
	for i := range list {
		if got, want := <-order, fmt.Sprintf(`{"message_type":"context_share","payload":{"n":%d}}`, i); got != want {
			t.Fatalf("message %d is %s", i, got)
		}
	}
	if len(order) > 0 || len(acked) != n {
		t.Errorf("%d messages more, %d acknowledgements", len(order), len(acked))
	}
}

// TestFlood (I-059, I-060): sockets that say nothing, and connections of a partner that end after
// ten messages that are none, keep no other connection of it from being served.
func TestFlood(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	good := s.dial(t)
	for range 200 {
		s.raw(t)
	}
	for range 5 {
		c := s.dial(t)
		for range 10 {
			if err := c.Send([]byte("{}")); err != nil {
				t.Fatal(err)
			}
			read(t, c, "error_response")
		}
		ends(t, c.Conn)
	}
	if got := exchange(t, good, task("served"), "task_response"); got.Payload["status"] != "completed" {
		t.Errorf("beside a flood: %s", got.Raw)
	}
	exchange(t, s.dial(t), task("let in"), "task_response")
}

package iacp_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/hosttest"
)

// largeTask is the frame of a question of about 60,000 bytes.
func largeTask() string { return frame(string(task(strings.Repeat("x", 60_000)).Text())) }

// begin sends a frame but for its last byte.
func begin(t *testing.T, c *iacptest.Conn, whole string) {
	t.Helper()
	if _, err := c.Conn.Write([]byte(whole[:len(whole)-1])); err != nil {
		t.Fatal(err)
	}
}

// TestHeldFrames (I-006): all connections of a partner hold so many bytes of large frames. A
// further one waits until there is room, and small ones do not.
func TestHeldFrames(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *iacp.Options) { o.MaxBody, o.Held = 70_000, 130_000 })
	whole := largeTask()
	first, second, third := s.dial(t), s.dial(t), s.dial(t)
	begin(t, first, whole)
	begin(t, second, whole)
	exchange(t, s.dial(t), task("small"), "task_response")
	answered := make(chan string, 1)
	go func() {
		_ = third.Send(task(strings.Repeat("y", 60_000)).Text())
		m, _ := third.Read()
		answered <- m.Type
	}()
	exchange(t, s.dial(t), task("small, too"), "task_response")
	select {
	case got := <-answered:
		t.Fatalf("a third frame is taken: %s", got)
	default:
	}
	if _, err := first.Conn.Write([]byte(whole[len(whole)-1:])); err != nil {
		t.Fatal(err)
	}
	read(t, first, "task_response")
	if got := <-answered; got != "task_response" {
		t.Errorf("got %s", got)
	}
	_ = second.Close() // its frame is over
	for range 3 {
		exchange(t, third, task(strings.Repeat("z", 60_000)), "task_response")
	}
}

// blockedRuntime takes no question until it is let go.
type blockedRuntime struct {
	gateway.Runtime
	asked, goOn chan struct{}
}

func (b *blockedRuntime) Ask(ctx context.Context, c gateway.Caller, a gateway.Ask) (gateway.Exchange, error) {
	b.asked <- struct{}{}
	<-b.goOn
	return b.Runtime.Ask(ctx, c, a)
}

// TestHeldFramesBusy (I-006, I-040): a large frame that has waited as long as a frame may take is refused
// as busy, and read past. The first message of a peer without a handshake is refused with its id, and
// ends the connection.
func TestHeldFramesBusy(t *testing.T) {
	t.Parallel()
	rt := &blockedRuntime{asked: make(chan struct{}, 10), goOn: make(chan struct{})}
	s := newSite(t, func(o *iacp.Options) {
		rt.Runtime = o.Runtime
		o.Runtime, o.MaxBody, o.Held, o.FrameTime = rt, 70_000, 70_000, time.Second
	})
	first, second, early := s.dial(t), s.dial(t), iacptest.Begun(s.raw(t))
	if _, err := first.Conn.Write([]byte(largeTask())); err != nil {
		t.Fatal(err)
	}
	<-rt.asked // it has the room until it is taken
	for _, m := range []iacptest.Message{task(strings.Repeat("y", 60_000)), task("and on")} {
		if err := second.Send(m.Text()); err != nil {
			t.Fatal(err)
		}
	}
	m := shownTask(60_000)
	if got := exchange(t, early, m, "error_response"); got.Parent != m.ID || !strings.Contains(fmt.Sprint(got.Payload["error_message"]), "no room for ") {
		t.Errorf("got %s", got.Raw)
	}
	ends(t, early.Conn)
	if got := read(t, second, "error_response"); !strings.Contains(fmt.Sprint(got.Payload["error_message"]), "no room for ") {
		t.Errorf("got %s", got.Raw)
	}
	close(rt.goOn)
	read(t, second, "task_response")
	read(t, first, "task_response")
}

// shownTask is a question of a peer without a handshake, with its credential and about so many bytes.
func shownTask(bytes int) iacptest.Message {
	m := task(strings.Repeat("x", bytes))
	m.Metadata = map[string]any{"auth": map[string]any{"token": token}}
	return m
}

// TestFrameBeforeCredential (I-006, I-052): before a peer has shown its credential a frame has at most
// 64 KiB. A longer one is refused by its length, before its bytes have come, and ends the connection;
// after the credential the limit is max_body.
func TestFrameBeforeCredential(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const want = "1048576 bytes, at most 65536 before the peer has shown its credential"
	shake := iacptest.New("handshake", "depot-1", "", map[string]any{"versions": []string{"1.0"}})
	for name, first := range map[string]string{"first": "", "after a handshake": frame(string(shake.Text()))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := s.raw(t)
			if _, err := io.WriteString(c, first+"\x00\x10\x00\x00"); err != nil {
				t.Fatal(err)
			}
			if got := ends(t, c); !strings.Contains(got, want) || !strings.Contains(got, "too_large") {
				t.Errorf("got %q", got)
			}
		})
	}
	exchange(t, iacptest.Begun(s.raw(t)), shownTask(60<<10), "task_response")
	exchange(t, s.dial(t), task(strings.Repeat("x", 1<<20)), "task_response")
}

// TestLargeFramesBeforeCredential (I-006, I-052): of the peers that have not shown a credential 64 may
// send a frame above 8 KiB. One more is refused as busy, a handshake is not, and there is a place again
// when one of them has shown its credential or has left.
func TestLargeFramesBeforeCredential(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *iacp.Options) { o.FirstTime = time.Hour })
	refused := make(chan net.Conn, 66)
	begin := func() net.Conn {
		c := s.raw(t)
		if _, err := io.WriteString(c, "\x00\x00\x20\x01"); err != nil {
			t.Fatal(err)
		}
		go func() {
			if got, err := iacptest.Begun(c).Read(); err == nil && got.Payload["error_code"] == "TIMEOUT" && strings.Contains(fmt.Sprint(got.Payload["error_message"]), "more than 8192 bytes before they have shown a credential") {
				refused <- c
			}
		}()
		return c
	}
	open := map[net.Conn]bool{}
	for range 65 {
		open[begin()] = true
	}
	delete(open, <-refused)
	begin()
	<-refused
	exchange(t, s.dial(t), task(strings.Repeat("x", 1<<20)), "task_response")
	exchange(t, iacptest.Begun(s.raw(t)), shownTask(10), "task_response")
	for c := range open {
		_ = c.Close()
		break
	}
	hosttest.Eventually(t, "there is a place", func() bool {
		c := iacptest.Begun(s.raw(t))
		if err := c.Send(shownTask(8 << 10).Text()); err != nil {
			t.Fatal(err)
		}
		got, err := c.Read()
		return err == nil && got.Type == "task_response"
	})
	for range 3 { // each gives its place back
		exchange(t, iacptest.Begun(s.raw(t)), shownTask(8<<10), "task_response")
	}
}

package iacp_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/hosttest"
)

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

package iacp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
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

// TestHeldFramesBusy (I-006, I-040): a large frame that has waited as long as a frame may take
// is refused as busy, and read past.
func TestHeldFramesBusy(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *iacp.Options) { o.MaxBody, o.Held, o.FrameTime = 70_000, 70_000, time.Second })
	whole := largeTask()
	busy := make(chan *iacptest.Conn, 5)
	for range cap(busy) {
		c := s.dial(t)
		begin(t, c, whole)
		go func() {
			if got, err := c.Read(); err == nil && strings.Contains(fmt.Sprint(got.Payload["error_message"]), "no room for ") {
				busy <- c
			}
		}()
	}
	c := <-busy
	if _, err := c.Conn.Write([]byte(whole[len(whole)-1:])); err != nil {
		t.Fatal(err)
	}
	exchange(t, c, task("and on"), "task_response")
}

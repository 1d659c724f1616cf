package contract

import (
	"context"
	"fmt"
	"testing"

	"skep/host/internal/hosttest"
)

// streamsOfOne is how many streams a caller of the case may have open.
const streamsOfOne = 4

// idleStreams: a caller has so many streams open, and one more is refused. Another caller has its own
// meanwhile, and a place is free when a stream is closed.
func (s *suite) idleStreams(t *testing.T) {
	s.part(t, "20", func() {
		own := s.attacked(t, fmt.Sprintf("max_streams_per_principal = %d\n", streamsOfOne))
		own.roles(t, "20", own.manyStreams)
	})
}

func (s *suite) manyStreams(t *testing.T, c caller) {
	cl, key := s.dial(t, c.token), "idle-"+c.role
	m := Message{ID: id(t, "1"), To: "boss", Thread: id(t, "thread"), Text: hosttest.Script(s.web.hold(key), finish("done"))}
	t.Cleanup(func() { s.web.free(key) })
	s.background(t, cl, m, key)
	open, closeLast := 0, func() {}
	for {
		end, err := s.openIdle(t, cl, m)
		if err != nil {
			wantRefused(t, err, Busy)
			break
		}
		closeLast = end
		if open++; open > streamsOfOne {
			t.Fatalf("%d streams are open, of %d", open, streamsOfOne)
		}
	}
	if open < streamsOfOne-1 { // the call itself may have one
		t.Fatalf("%d streams are open, of %d", open, streamsOfOne)
	}
	other, its := s.otherToken(), m
	if c.role == "user" {
		other = bobToken
	}
	its.Text = hosttest.Script(s.web.hold(key+"-other"), finish("done"))
	t.Cleanup(func() { s.web.free(key + "-other") })
	s.background(t, s.dial(t, other), its, key+"-other")
	if _, err := s.openIdle(t, s.dial(t, other), its); err != nil {
		t.Errorf("another caller has %v", err)
	}
	closeLast()
	settled(t, "a place is free", func() bool {
		_, err := s.openIdle(t, cl, m)
		return err == nil
	})
}

// openIdle opens a stream of a message in the background, and returns when it is open or refused.
func (s *suite) openIdle(t *testing.T, cl Client, m Message) (end func(), err error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(cancel)
	opened, over := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		_, err := cl.Read(ctx, m, 0, func(Piece) {
			select {
			case opened <- struct{}{}:
			default:
			}
		})
		over <- err
	}()
	select {
	case <-opened:
		return cancel, nil
	case err := <-over:
		return cancel, fmt.Errorf("the stream is over: %w", err)
	}
}

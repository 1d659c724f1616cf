package contract

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"skep/host/internal/hosttest"
)

// gracefulStop: a host that stops takes nothing new, and says so, or leaves it at a broker. Who waits
// has his answer or is told, and a host that starts again on its data answers him.
func (s *suite) gracefulStop(t *testing.T) {
	own := *s
	own.web, own.foreign = newWeb(t), newForeign()
	dir := t.TempDir()
	own.write(t, dir)
	own.site = startSite(t, own.p, dir, nil)
	cl, key := own.dial(t, s.token()), "stop"
	m := Message{ID: id(t, "1"), To: "boss", Thread: id(t, "thread"), Text: hosttest.Script(own.web.hold(key), finish("done"))}
	waits := later(t, cl, m)
	own.web.held(t, key)
	stopped := make(chan error, 1)
	go func() { stopped <- own.site.Stop() }()
	if !own.p.Broker {
		takesNothing(t, cl)
	}
	own.web.free(key)
	if err := receive(t, "the host stops", stopped); err != nil {
		t.Error(err)
	}
	var waiting []<-chan sent // their messages wait at the broker
	if own.p.Broker {
		waiting = []<-chan sent{waits, later(t, cl, Message{ID: id(t, "new"), To: "boss", Text: hosttest.Script(finish("done"))})}
	} else if got := receive(t, "who waits is told", waits); got.err == nil && got.Status != Working && (got.Status != Done || got.Text != "done") {
		// Where the drain ended before the turn, the call is told that it is being worked on.
		t.Errorf("got %s %q", got.Status, got.Text)
	}
	own.site = startSite(t, own.p, dir, nil)
	own.site.StopAtEnd(t)
	for _, w := range waiting {
		got := receive(t, "who waits has his answer", w)
		wantText(t, got.State, got.err, "done")
	}
	wantText(t, send(t, own.dial(t, s.token()), m), nil, "done")
	if n := own.web.count("/hold/" + key); n > 2 { // once more if the stop cut it off
		t.Errorf("the agent called %d times", n)
	}
}

// takesNothing waits until the host refuses what is new.
func takesNothing(t *testing.T, cl Client) {
	t.Helper()
	var err error
	n := 0
	settled(t, "nothing is taken any more", func() bool {
		n++
		select {
		case got := <-later(t, cl, Message{ID: id(t, fmt.Sprintf("new-%d", n)), To: "boss", Text: hosttest.Script(finish("new"))}):
			err = got.err
		case <-time.After(time.Second): // taken as the stop began: its turn is for the next start
		}
		return err != nil
	})
	if no := new(Refused); errors.As(err, &no) && no.Reason != Stopping {
		t.Errorf("refused: %v", no)
	}
}

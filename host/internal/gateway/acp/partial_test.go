package acp_test

import (
	"net/http"
	"testing"

	"skep/host/internal/gateway"
	"skep/spec/mail"
)

// TestPartialIsNoAnswer: an INFORM of progress is shown and leaves the question open,
// with and without a reply_to; about nothing that waits it is refused with an event.
func TestPartialIsNoAnswer(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	carried := make(chan gateway.Carried, 1)
	go func() {
		carried <- o.g.Carry(t.Context(), o.p, outgoing("m1", mail.Request, "agentB", "how many?"))
	}()
	asked := o.gets(t, 1)[0]
	for n, replyTo := range []string{asked.Header.ID, ""} {
		m := asked.Reply("INFORM", "half")
		m.Header.ReplyTo, m.Header.Progress = replyTo, "partial"
		if r := o.send(t, m); r.Status != http.StatusAccepted {
			t.Errorf("reply_to %q: %d %s", replyTo, r.Status, r.Text)
		}
		if shown := o.rt.Shown(); len(shown) != n+1 || shown[n].Piece.Text != "half" {
			t.Errorf("reply_to %q: shown %+v", replyTo, shown)
		}
	}
	if brought := o.rt.take(); len(brought) != 0 {
		t.Errorf("progress is brought as %+v", brought)
	}
	answer := asked.Reply("INFORM", "seven")
	if r := o.send(t, answer); r.Status != http.StatusAccepted {
		t.Errorf("the answer: %d %s", r.Status, r.Text)
	}
	if got := <-carried; got.State != gateway.Taken {
		t.Errorf("%+v", got)
	}
	if brought := o.rt.take(); len(brought) != 1 || brought[0].Body != "seven" {
		t.Errorf("brought %+v", brought)
	}
	late := asked.Reply("INFORM", "half")
	late.Header.Progress = "partial"
	if r := o.send(t, late); r.Status != http.StatusNotFound {
		t.Errorf("late progress: %d %s", r.Status, r.Text)
	}
	if seen := o.rt.Events(); seen[len(seen)-1].Verdict != "refused" {
		t.Errorf("late progress leaves %+v", seen[len(seen)-1])
	}
}

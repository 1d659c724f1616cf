package uamp_test

import (
	"net/http"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/envelope"
)

// TestSharedKey (U-028, U-088, U-105): of two hosts that hold one key each has what was sent to it:
// an answer, an event or a cancel that reaches the other is told that nothing waits there, leaves
// no record, and counts at the right host after it.
func TestSharedKey(t *testing.T) {
	t.Parallel()
	o, other := newOut(t), newHive(t, nil)
	ask, carried := o.asking(t, "e1")
	for _, intent := range []envelope.Intent{envelope.Confirm, envelope.Deny, envelope.Error, envelope.Progress} {
		if r := other.send(t, about(ask, intent, "seven")); r.status != http.StatusNotFound {
			t.Errorf("%s at the other host: %d %s", intent, r.status, r.text)
		}
	}
	seen := o.exposeAsks("calc")
	theirs := newAsk("calc", "2+2")
	o.take(t, theirs)
	<-seen
	cancel := newAsk("calc", "")
	cancel.Intent, cancel.ReplyTo = envelope.Cancel, theirs.ID
	other.refused(t, "a cancel at the other host", other.send(t, cancel), envelope.UnknownRecipient)
	if r := other.call(t, http.MethodGet, "/v1/stream/str-"+string(theirs.ID), "lab-token", ""); r.status != http.StatusNotFound {
		t.Errorf("its stream at the other host: %d %s", r.status, r.text)
	}
	for _, kind := range []string{"conversation", "stream", "subscription", "event"} {
		if n := len(other.recordsOf(t, "lab", kind)); n != 0 {
			t.Errorf("the other host has %d records of kind %s", n, kind)
		}
	}
	o.take(t, about(ask, envelope.Confirm, "seven"))
	if got := <-carried; got.State != gateway.Taken {
		t.Errorf("%+v", got)
	}
	if asked := o.rec.take(); len(asked) != 1 || asked[0].Body != "seven" {
		t.Errorf("%+v", asked)
	}
}

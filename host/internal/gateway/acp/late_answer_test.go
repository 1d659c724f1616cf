package acp_test

import (
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/gatewaytest"
	"skep/spec/mail"
)

// TestAnswerToErasedTask (A-027, G-024): an answer whose task is gone is refused with the reason,
// and so is its repeat.
func TestAnswerToErasedTask(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	carried := make(chan gateway.Carried, 1)
	go func() {
		carried <- o.g.Carry(t.Context(), o.p, outgoing("m1", mail.Request, "agentB", "how many?"))
	}()
	answer := o.gets(t, 1)[0].Reply("RESPONSE", "seven")
	o.rt.mu.Lock()
	o.rt.fails = gateway.ErrUnknown
	o.rt.mu.Unlock()
	for _, want := range []string{"its task is gone", "waits for no answer"} {
		if r := o.send(t, answer); r.Status != http.StatusNotFound || !strings.Contains(r.Text, want) {
			t.Errorf("got %d %s, want %s", r.Status, r.Text, want)
		}
	}
	if got := <-carried; got.State != gateway.Taken {
		t.Errorf("%+v", got)
	}
}

// TestMissingReplyTo: a sender without the right to tell that forgets reply_to reads
// that it is missing.
func TestMissingReplyTo(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	c := gatewaytest.Realm("default", "acme")
	c.May = gateway.Rights{gateway.MayAsk}
	o.rt.Admit("ask-token", c)
	o.Token = "ask-token"
	for _, kind := range []string{"RESPONSE", "INFORM"} {
		o.rt.mu.Lock()
		o.rt.fails = gateway.ErrDenied
		o.rt.mu.Unlock()
		r := o.send(t, acptest.New(kind, "agentA", "calc", "7"))
		if want := "reply_to is missing, so this answers nothing and would be told, and "; r.Status != http.StatusForbidden || !strings.Contains(r.Text, want) || !strings.Contains(r.Text, string(gateway.MayTell)) {
			t.Errorf("%s: %d %s, want %s", kind, r.Status, r.Text, want)
		}
	}
}

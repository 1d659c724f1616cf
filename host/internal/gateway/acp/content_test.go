package acp_test

import (
	"context"
	"net/http"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/gatewaytest"
)

// TestPlainAnswers: plain text in answer to JSON is the result of an object; in
// answer to XML it is text/plain.
func TestPlainAnswers(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.expose("plain", func(context.Context, *gatewaytest.Turn) gateway.Answer { return gateway.Answer{Body: "done"} })
	for asked, want := range map[string][2]string{
		"application/json": {"application/json", `{"status":"success","result":"done"}`},
		"application/xml":  {"text/plain", "done"},
	} {
		q := acptest.New("REQUEST", "agentA", "plain", `{}`)
		q.Header.ContentType = asked
		r := s.send(t, q)
		if r.Status != http.StatusOK || r.Message == nil || r.Message.Header.ContentType != want[0] || r.Message.Body != want[1] {
			t.Errorf("%s got %d %s", asked, r.Status, r.Text)
		}
	}
}

// TestURISender: a sender that is a URI is the receiver of its answer.
func TestURISender(t *testing.T) {
	t.Parallel()
	const uri = "agent://example.com/myagent"
	s := newSite(t, nil)
	s.admit("uri-token", "example", uri)
	s.Token = "uri-token"
	r := s.send(t, acptest.New("REQUEST", uri, "calc", "7"))
	if r.Message == nil || r.Message.Header.Type != "RESPONSE" || r.Message.Header.Receiver != uri {
		t.Errorf("got %d %s", r.Status, r.Text)
	}
}

// TestWaitIsOver: a POST whose answer takes longer than its Prefer allows is told
// where the answer will be.
func TestWaitIsOver(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	q := acptest.New("REQUEST", "agentA", "slow", "1")
	r := s.send(t, q, "Prefer", "wait=1")
	at := r.Header.Get("Location")
	if r.Status != http.StatusAccepted || at == "" {
		t.Fatalf("got %d %q %s", r.Status, at, r.Text)
	}
	close(s.release)
	if m := s.wait(t, at).Message; m.Header.Type != "RESPONSE" || m.Header.ReplyTo != q.Header.ID {
		t.Errorf("there is %+v", m)
	}
}

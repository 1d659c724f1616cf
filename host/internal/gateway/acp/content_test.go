package acp_test

import (
	"context"
	"io"
	"net/http"
	"reflect"
	"strings"
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

// TestErrorForm (A-028, D-A11): the body of an ERROR is JSON unless the content of the
// question is another; a wrong version names the supported ones, and what may be taken
// later has retry.
func TestErrorForm(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	supported := map[string]any{"supported": []any{"1.0"}}
	for _, c := range []struct {
		version, receiver, asked, content string
		failure                           error
		status                            int
		code                              string
		retry                             bool
		details                           map[string]any
	}{
		{"2.0", "calc", "application/json", "application/json", nil, http.StatusBadRequest, "unsupported_version", false, supported},
		{"2.0", "calc", "text/plain", "text/plain", nil, http.StatusBadRequest, "unsupported_version", false, nil},
		{"1.0", "calc", "application/json", "application/json", gateway.ErrBusy, http.StatusTooManyRequests, "busy", true, nil},
		{"1.0", "calc", "application/json", "application/json", gateway.ErrDraining, http.StatusServiceUnavailable, "busy", true, nil},
		{"1.0", "calc", "application/json", "application/json", io.ErrUnexpectedEOF, http.StatusInternalServerError, "internal", true, nil},
		{"1.0", "nobody", "application/json", "application/json", nil, http.StatusNotFound, "unknown_receiver", false, nil},
		{"1.0", "fails", "application/order+json", "application/json", nil, http.StatusOK, "internal", false, nil},
		{"1.0", "late", "application/json", "application/json", nil, http.StatusOK, "timeout", false, nil},
		{"1.0", "late", "application/xml", "text/plain", nil, http.StatusOK, "timeout", false, nil},
	} {
		if c.failure != nil {
			s.rt.FailNext("Ask", c.failure)
		}
		q := acptest.New("REQUEST", "agentA", c.receiver, "{}")
		q.Header.Version, q.Header.ContentType = c.version, c.asked
		r := s.send(t, q)
		got := faultOf(t, r)
		if r.Status != c.status || got.Code != c.code || !reflect.DeepEqual(got.Details, c.details) || r.Message.Header.ContentType != c.content {
			t.Errorf("version %s to %s with %s and %v: got %d %s", c.version, c.receiver, c.asked, c.failure, r.Status, r.Text)
		}
		if isJSON := c.content == "application/json"; isJSON != (got.Retry != nil) || isJSON && *got.Retry != c.retry {
			t.Errorf("version %s to %s with %s and %v: retry in %s", c.version, c.receiver, c.asked, c.failure, r.Text)
		}
	}
}

// TestBodyFlags (A-008, A-011, D-A7): a body that is not what its content_type says, or no
// string, has a flag where the agent sees it, and is else as it came.
func TestBodyFlags(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	seen := s.exposeAsks("calc")
	for _, c := range []struct {
		contentType, body, want string
		flags                   any
	}{
		{"application/json", `"{\"a\":1}"`, `{"a":1}`, nil},
		{"application/json", `"{"`, "{", []string{"body_not_json"}},
		{"application/order+json; charset=utf-8", `"hello"`, "hello", []string{"body_not_json"}},
		{"text/plain", `"{"`, "{", nil},
		{"application/json", `{"a":[1.50]}`, `{"a":[1.50]}`, []string{"body_object"}},
		{"application/json", `[{"b":"ü"}]`, `[{"b":"ü"}]`, []string{"body_object"}},
	} {
		m := acptest.New("INFORM", "agentA", "calc", "")
		m.Header.ContentType = c.contentType
		if r := s.sendText(t, strings.Replace(m.Text(), `"body":""`, `"body":`+c.body, 1)); r.Status != http.StatusAccepted {
			t.Fatalf("%s %s: %d %s", c.contentType, c.body, r.Status, r.Text)
		}
		got := <-seen
		if got.Body != c.want || !reflect.DeepEqual(got.Info["flags"], c.flags) {
			t.Errorf("%s %s arrived as %q with the flags %v", c.contentType, c.body, got.Body, got.Info["flags"])
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

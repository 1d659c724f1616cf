package amp_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/gateway/amp/amptest"
)

// TestHostileMembers (M-009, M-024, M-076): line ends in ids make no header field, an id that looks like a
// path leads to its own message alone, and numbers that nothing can count are refused or clamped.
func TestHostileMembers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const line = "a\r\nSet-Cookie: evil=1\r\n\r\n{}"
	for name, c := range map[string]struct {
		change func(m *amptest.Message)
		status int
		code   string
	}{
		"a line end in the id":             {func(m *amptest.Message) { m.Message.ID = line }, http.StatusBadRequest, "INVALID_SCHEMA"},
		"a line end in the sender":         {func(m *amptest.Message) { m.Message.Source.AgentID = "agent" + line }, http.StatusBadRequest, "INVALID_SCHEMA"},
		"a line end in the session":        {func(m *amptest.Message) { m.Message.Source.SessionID = line }, http.StatusBadRequest, "INVALID_SCHEMA"},
		"a line end in the recipient":      {func(m *amptest.Message) { m.Message.Destination.AgentID = line }, http.StatusBadRequest, "INVALID_SCHEMA"},
		"a line end in the correlation id": {func(m *amptest.Message) { m.Message.Headers["correlation_id"] = line }, http.StatusBadRequest, "INVALID_SCHEMA"},
		"a recipient that is a path":       {func(m *amptest.Message) { m.Message.Destination.AgentID = "../../echo" }, http.StatusNotFound, "AGENT_NOT_FOUND"},
		"a time without end":               {func(m *amptest.Message) { m.Message.Headers["timeout_ms"] = json.Number("1e308") }, http.StatusBadRequest, "INVALID_SCHEMA"},
		"a time that is no number":         {func(m *amptest.Message) { m.Message.Headers["timeout_ms"] = json.Number("1e999") }, http.StatusBadRequest, "INVALID_SCHEMA"},
		"a time before now":                {func(m *amptest.Message) { m.Message.Headers["timeout_ms"] = json.Number("-1e308") }, http.StatusBadRequest, "INVALID_SCHEMA"},
		"a priority without end":           {func(m *amptest.Message) { m.Message.Headers["priority"] = json.Number("1e308") }, http.StatusOK, ""},
		"hops without end": {func(m *amptest.Message) {
			m.Message.Headers["routing_hints"] = amptest.Object{"hops": json.Number("1e308")}
		}, http.StatusOK, ""},
	} {
		m := amptest.Mail("agent-1", "echo", "hello")
		c.change(&m)
		r := s.send(t, m)
		code := ""
		if r.Message != nil {
			code, _, _ = r.Message.Fault()
		}
		if r.Status != c.status || code != c.code || r.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: got %d %v %s, want %d %s", name, r.Status, r.Header, r.Text, c.status, c.code)
		}
	}
	for _, id := range []string{"../../registry", "..%2f..%2fregistry", "a/../b", "%00", "//host/x"} {
		m := amptest.Mail("agent-1", "slow", "hello")
		m.Message.ID = id
		r := s.send(t, m, "Prefer", "respond-async")
		at := r.Header.Get("Location")
		name, ok := strings.CutPrefix(at, "/amp/v1/messages/")
		if r.Status != http.StatusAccepted || !ok || strings.ContainsAny(name, "/?#") || name == ".." {
			t.Errorf("%q is at %q, %d %s", id, at, r.Status, r.Text)
			continue
		}
		got, err := s.Get(s.server.URL+at, "Prefer", "wait=0")
		if err != nil || got.Message == nil || got.Message.Header("correlation_id") != id {
			t.Errorf("%q at %s: %v, %d %s", id, at, err, got.Status, got.Text)
		}
	}
}

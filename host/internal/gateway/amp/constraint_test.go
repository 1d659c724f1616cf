package amp_test

import (
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/gatewaytest"
)

// TestConstraints (M-022, V-M18): parameters beyond the declared constraints of a capability are refused with the
// constraint, others reach the agent. Constraints are listed, and those of another form not enforced.
func TestConstraints(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	declare := func(name, capability, constraints string) {
		s.expose(name, gatewaytest.Echo, gateway.Capability{ID: capability, Constraints: []byte(constraints)})
	}
	declare("translator", "translation", `{"max_input_length":10,"supported_languages":["en","pt-BR"],"response_time_ms":5000}`)
	declare("analyst", "text-analysis", `{"max_input_length":10000}`)
	declare("reader", "summarization", `{"max_input_length":"ten"}`)
	for name, c := range map[string]struct {
		parameters amptest.Object
		constraint string // that is broken, empty for none
	}{
		"short":              {amptest.Object{"text": "äöüäöüäöüä", "n": 1234567890123}, ""},
		"long":               {amptest.Object{"text": "12345678901"}, "max_input_length"},
		"long in all":        {amptest.Object{"text": []any{"12345", amptest.Object{"more": "67890"}, "1"}}, "max_input_length"},
		"a language":         {amptest.Object{"language": "en"}, ""},
		"a kind of it":       {amptest.Object{"target_language": "EN-gb"}, ""},
		"another":            {amptest.Object{"source_language": "fr"}, "supported_languages"},
		"more than a kind":   {amptest.Object{"language": "pt"}, "supported_languages"},
		"with the same head": {amptest.Object{"language": "eng"}, "supported_languages"},
		"one of several":     {amptest.Object{"languages": []string{"en", "de"}}, "supported_languages"},
		"no language":        {amptest.Object{"language": 7}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := s.send(t, amptest.Request("agent-1", "translator", "translation", c.parameters))
			if c.constraint == "" {
				wantStatus(t, r, http.StatusOK)
				return
			}
			wantFault(t, r, http.StatusBadRequest, "INVALID_SCHEMA", "VIOLATIONS")
			if got := r.Message.Details()["constraint"]; got != c.constraint {
				t.Errorf("broken is %v: %s", got, r.Text)
			}
		})
	}
	analyse := func(text string) amptest.Reply {
		return s.send(t, amptest.Request("agent-1", "analyst", "text-analysis", amptest.Object{"text": text}))
	}
	wantStatus(t, analyse(strings.Repeat("é", 10000)), http.StatusOK)
	wantFault(t, analyse(strings.Repeat("é", 10001)), http.StatusBadRequest, "INVALID_SCHEMA", "VIOLATIONS")
	wantStatus(t, s.send(t, amptest.Request("agent-1", "reader", "summarization", amptest.Object{"text": "a text of many characters"})), http.StatusOK)
	if r := s.control(t, "discovery", amptest.Object{"query": amptest.Object{"capabilities": []string{"translation"}}}); !strings.Contains(r.Text, `"constraints":{"max_input_length":10,`) {
		t.Errorf("listed as %s", r.Text)
	}
}

// TestConstraintsRoute (M-022, M-114): of the agents with a capability one is chosen whose constraints the
// parameters fit, also when it has more to do.
func TestConstraintsRoute(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.expose("a", gatewaytest.Echo, gateway.Capability{ID: "translation", Constraints: []byte(`{"supported_languages":["fr"]}`)})
	s.expose("b", gatewaytest.Echo, gateway.Capability{ID: "translation", Constraints: []byte(`{"supported_languages":["en"]}`)})
	for _, c := range []struct{ language, agent string }{{"en", "b"}, {"fr", "a"}, {"en", "b"}} {
		r := s.send(t, amptest.Request("agent-1", "", "translation", amptest.Object{"language": c.language}))
		if wantStatus(t, r, http.StatusOK); r.Message.Message.Source.AgentID != c.agent {
			t.Errorf("%s went to %s", c.language, r.Message.Message.Source.AgentID)
		}
	}
	wantFault(t, s.send(t, amptest.Request("agent-1", "", "translation", amptest.Object{"language": "de"})), http.StatusBadRequest, "INVALID_SCHEMA", "VIOLATIONS")
}

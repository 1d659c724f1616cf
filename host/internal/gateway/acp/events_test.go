package acp_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/gatewaytest"
)

// a stream waits for the first message, and the next one goes on after the
// Last-Event-ID; until then a message is there again. Another realm's agents are refused.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	c := gatewaytest.Realm("default", "acme")
	c.May = gateway.Rights{gateway.MayAsk, gateway.MayTell, gateway.MayRelay}
	s.rt.Admit("acme-token", c)
	open := func(receiver, last string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.server.URL+"/acp/v1/events?receiver="+receiver, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.Token)
		req.Header.Set("Last-Event-ID", last)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	relay := func(text string) {
		t.Helper()
		if r := s.send(t, acptest.New("INFORM", "agentA", "agentB", text)); r.Status != http.StatusAccepted {
			t.Fatalf("got %+v", r)
		}
	}
	next := func(resp *http.Response) (id, data string) {
		t.Helper()
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if text, is := strings.CutPrefix(lines.Text(), "id: "); is {
				id = text
			}
			if text, is := strings.CutPrefix(lines.Text(), "data: "); is {
				return id, text
			}
		}
		t.Fatal("no event")
		return
	}
	waits := open("agentB", "")
	relay("one")
	first, data := next(waits)
	if !strings.Contains(data, `"one"`) {
		t.Errorf("got %s", data)
	}
	if id, again := next(open("agentB", "0")); id != first || again != data {
		t.Errorf("got %s %s", id, again)
	}
	waits = open("agentB", first)
	relay("two")
	if id, data := next(waits); id == first || !strings.Contains(data, `"two"`) {
		t.Errorf("got %s %s", id, data)
	}
	if resp := open("mallory", ""); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a foreign agent gets %d", resp.StatusCode)
	}
	if resp := open("agentB", "x"); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a cursor that is none gets %d", resp.StatusCode)
	}
}

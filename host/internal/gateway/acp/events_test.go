package acp_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/state"
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

// TestCursorOfAnother: a read with the cursor of another receiver, or with a number that
// no read has returned, is refused and removes nothing.
func TestCursorOfAnother(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	c := gatewaytest.Realm("default", "acme")
	c.May = gateway.Rights{gateway.MayAsk, gateway.MayTell, gateway.MayRelay}
	s.rt.Admit("acme-token", c)
	read := func(query string) (status int, page struct {
		Messages []acptest.Message
		Next     string
	}) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.server.URL+"/acp/v1/messages?"+query, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.Token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode == http.StatusOK {
			if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
				t.Fatal(err)
			}
		}
		return resp.StatusCode, page
	}
	for _, receiver := range []string{"agentA", "agentB"} {
		if r := s.send(t, acptest.New("INFORM", "agentC", receiver, "for "+receiver)); r.Status != http.StatusAccepted {
			t.Fatalf("got %+v", r)
		}
	}
	_, later := read("receiver=agentB")
	for _, after := range []string{later.Next, "9223372036854775807", "-1"} {
		if status, _ := read("receiver=agentA&after=" + after); status != http.StatusBadRequest {
			t.Errorf("after=%s: status %d", after, status)
		}
	}
	if _, page := read("receiver=agentA"); len(page.Messages) != 1 {
		t.Errorf("it has %d messages", len(page.Messages))
	}
	if _, page := read("receiver=agentB&after=" + later.Next); len(page.Messages) != 0 || page.Next != later.Next {
		t.Errorf("past its cursor: %+v", page)
	}
}

// What a mailbox has lost, as with the erasure of its tenant or by its age, is put into it
// again when it is sent again.
func TestMailboxAfterAnErasure(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	c := gatewaytest.Realm("default", "acme")
	c.May = gateway.Rights{gateway.MayAsk, gateway.MayTell, gateway.MayRelay}
	s.rt.Admit("acme-token", c)
	m := acptest.New("INFORM", "agentA", "agentB", "x")
	kept := func() []state.Record {
		t.Helper()
		list, err := s.rt.State().List(t.Context(), state.Key{Tenant: "default", Gateway: "acp", Realm: "acme", Kind: "mailbox"}, state.Key{}, 10)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for range 2 { // a repeat is there once
		if r := s.send(t, m); r.Status != http.StatusAccepted {
			t.Fatalf("got %+v", r)
		}
	}
	before := kept()
	if len(before) != 1 {
		t.Fatalf("%d messages are kept", len(before))
	}
	if err := s.rt.State().Delete(t.Context(), before[0].Key, 0); err != nil {
		t.Fatal(err)
	}
	if r := s.send(t, m); r.Status != http.StatusAccepted || len(kept()) != 1 {
		t.Errorf("after the erasure it got %+v, and %d are kept", r, len(kept()))
	}
}

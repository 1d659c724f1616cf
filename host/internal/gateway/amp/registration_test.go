package amp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/gatewaytest"
	"skep/spec/mail"
)

// control sends a request to the registry.
func (s *site) control(t *testing.T, capability string, payload amptest.Object) amptest.Reply {
	t.Helper()
	m := amptest.New("request", "agent-1", "registry", payload)
	m.Message.Destination.Capability = capability
	return s.send(t, m)
}

// registration is the payload that registers an agent.
func registration(id string) amptest.Object {
	return amptest.Object{
		"agent":          amptest.Object{"id": id, "name": "Customer Service Agent", "framework": "langchain"},
		"capabilities":   []amptest.Object{{"id": "translation", "version": "1.0", "description": "translates"}},
		"endpoints":      amptest.Object{"invoke": "https://agent.example.com/invoke", "health": "https://agent.example.com/health"},
		"authentication": amptest.Object{"type": "bearer", "credentials": "the-secret-of-the-agent"},
	}
}

// anyAddress lets agents register at any address.
func anyAddress(o *amp.Options) { o.CheckCallback = func(string) error { return nil } }

func wantStatus(t *testing.T, r amptest.Reply, status int) amptest.Object {
	t.Helper()
	if r.Status != status {
		t.Fatalf("got %d %s, want %d", r.Status, r.Text, status)
	}
	return r.Message.Result()
}

// TestRegistration (M-027, M-029, V-M05, V-M38): an agent of a partner registers, is found
// with its address and without its credential, renews, replaces and ends its registration.
func TestRegistration(t *testing.T) {
	t.Parallel()
	s := newSite(t, anyAddress)
	got := wantStatus(t, s.control(t, "registration", registration("agent-7")), http.StatusOK)
	if got["registered"] != true || got["agent_id"] != "agent-7" || got["protocol_version"] != "1.0" || got["lease_seconds"] != 300.0 {
		t.Errorf("registered as %v", got)
	}
	found := discover(t, s, amptest.Object{"capabilities": []string{"translation"}})
	if names(found["agents"]) != "agent-7" {
		t.Fatalf("found %v", found)
	}
	one := fmt.Sprint(found["agents"])
	if !strings.Contains(one, "https://agent.example.com/invoke") || strings.Contains(one, "/health") || strings.Contains(one, "secret") {
		t.Errorf("found %s", one)
	}
	if list, _ := found["agents"].([]any); len(list) != 1 || list[0].(amptest.Object)["status"] != "unknown" {
		t.Errorf("an agent whose health is not looked at is listed as %s", one)
	}
	wantStatus(t, s.control(t, "heartbeat", amptest.Object{"agent": amptest.Object{"id": "agent-7"}}), http.StatusOK)
	again := registration("agent-7")
	again["capabilities"] = []amptest.Object{{"id": "summarization"}}
	wantStatus(t, s.control(t, "registration", again), http.StatusOK)
	if found = discover(t, s, amptest.Object{"capabilities": []string{"translation"}}); names(found["agents"]) != "" {
		t.Errorf("a replaced registration is found: %v", found)
	}
	wantStatus(t, s.control(t, "deregistration", amptest.Object{"agent": amptest.Object{"id": "agent-7"}}), http.StatusOK)
	wantStatus(t, s.control(t, "deregistration", amptest.Object{"agent": amptest.Object{"id": "agent-7"}}), http.StatusOK)
	if found = discover(t, s, amptest.Object{"capabilities": []string{"summarization"}}); names(found["agents"]) != "" {
		t.Errorf("a deregistered agent is found: %v", found)
	}
	wantFault(t, s.control(t, "heartbeat", amptest.Object{"agent": amptest.Object{"id": "agent-7"}}), http.StatusUnauthorized, "AUTHENTICATION_FAILED", "NOT_REGISTERED")
}

// TestRegistrationRefused (M-027, M-079, G-012, G-055): a registration that could not be used is
// refused with what is wrong, and leaves nothing.
func TestRegistrationRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *amp.Options) {
		o.CheckCallback = func(address string) error { return fmt.Errorf("%s is private", address) }
	})
	stranger := gatewaytest.Realm("default", "amp+stranger")
	stranger.May = gateway.Rights{gateway.MayAsk}
	s.rt.Admit("stranger-token", stranger)
	agent := func(members amptest.Object) amptest.Object { return amptest.Object{"agent": members} }
	shows := func(kind, credentials string) amptest.Object {
		return amptest.Object{"agent": amptest.Object{"id": "agent-7"}, "authentication": amptest.Object{"type": kind, "credentials": credentials}}
	}
	for name, c := range map[string]struct {
		payload      amptest.Object
		status       int
		code, reason string
	}{
		"no agent":        {amptest.Object{}, 400, "INVALID_SCHEMA", "MALFORMED"},
		"no object":       {amptest.Object{"agent": "agent-7"}, 400, "INVALID_SCHEMA", "MALFORMED"},
		"another's":       {agent(amptest.Object{"id": "other-7"}), 403, "AUTHENTICATION_FAILED", "FORBIDDEN"},
		"reserved":        {agent(amptest.Object{"id": "registry"}), 400, "INVALID_SCHEMA", "MALFORMED"},
		"long":            {agent(amptest.Object{"id": "agent-" + strings.Repeat("x", 256)}), 400, "INVALID_SCHEMA", "MALFORMED"},
		"framework":       {agent(amptest.Object{"id": "agent-7", "framework": "own"}), 400, "INVALID_SCHEMA", "MALFORMED"},
		"version":         {agent(amptest.Object{"id": "agent-7", "protocol_version": "2.0"}), 400, "INVALID_SCHEMA", "VERSION_UNSUPPORTED"},
		"no capability":   {amptest.Object{"agent": amptest.Object{"id": "agent-7"}, "capabilities": []amptest.Object{{}}}, 400, "INVALID_SCHEMA", "MALFORMED"},
		"many":            {amptest.Object{"agent": amptest.Object{"id": "agent-7"}, "capabilities": make([]amptest.Object, 65)}, 413, "INVALID_SCHEMA", "TOO_LARGE"},
		"large":           {agent(amptest.Object{"id": "agent-7", "name": strings.Repeat("x", 33<<10)}), 413, "INVALID_SCHEMA", "TOO_LARGE"},
		"two lines":       {shows("bearer", "secret\r\nX-API-Key: other"), 400, "INVALID_SCHEMA", "MALFORMED"},
		"a space":         {shows("bearer", "secret other"), 400, "INVALID_SCHEMA", "MALFORMED"},
		"not ASCII":       {shows("bearer", "sécret"), 400, "INVALID_SCHEMA", "MALFORMED"},
		"other type":      {shows("hmac", "secret"), 400, "INVALID_SCHEMA", "MALFORMED"},
		"no credential":   {shows("bearer", ""), 400, "INVALID_SCHEMA", "MALFORMED"},
		"private address": {registration("agent-7"), 400, "INVALID_SCHEMA", "CALLBACK"},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.control(t, "registration", c.payload)
			if wantFault(t, r, c.status, c.code, c.reason); strings.Contains(r.Text, "secret") {
				t.Errorf("the refusal shows a credential: %s", r.Text)
			}
		})
	}
	m := amptest.New("request", "", "registry", agent(amptest.Object{"id": "amp+stranger"}))
	m.Message.Destination.Capability = "registration"
	wantFault(t, s.send(t, m, "Authorization", "Bearer stranger-token"), 403, "AUTHENTICATION_FAILED", "FORBIDDEN")
	if found := discover(t, s, amptest.Object{}); strings.Contains(names(found["agents"]), "agent-7") {
		t.Errorf("a refused registration has left %v", found)
	}
}

// TestRegistrationRealms (M-027): a realm neither finds nor changes the agents of another.
func TestRegistrationRealms(t *testing.T) {
	t.Parallel()
	s := newSite(t, anyAddress)
	s.admit("rival-token", gateway.Partner{Name: "rival", IDs: []string{"agent*"}})
	wantStatus(t, s.control(t, "registration", registration("agent-7")), http.StatusOK)
	rival := *s
	rival.Token = "rival-token"
	if found := discover(t, &rival, amptest.Object{}); strings.Contains(names(found["agents"]), "agent-7") {
		t.Errorf("another realm finds %v", found)
	}
	wantFault(t, rival.control(t, "heartbeat", amptest.Object{"agent": amptest.Object{"id": "agent-7"}}), http.StatusUnauthorized, "AUTHENTICATION_FAILED", "NOT_REGISTERED")
	wantStatus(t, rival.control(t, "deregistration", amptest.Object{"agent": amptest.Object{"id": "agent-7"}}), http.StatusOK)
	if found := discover(t, s, amptest.Object{"capabilities": []string{"translation"}}); names(found["agents"]) != "agent-7" {
		t.Errorf("after the deregistration by another realm: %v", found)
	}
}

// TestRegistrationLimit (M-027): a realm has so many agents, and may replace each of them.
func TestRegistrationLimit(t *testing.T) {
	t.Parallel()
	s := newSite(t, anyAddress)
	for i := range 256 {
		wantStatus(t, s.control(t, "registration", registration(fmt.Sprintf("agent-%03d", i))), http.StatusOK)
	}
	wantFault(t, s.control(t, "registration", registration("agent-256")), http.StatusServiceUnavailable, "INSUFFICIENT_RESOURCES", "FULL")
	wantStatus(t, s.control(t, "registration", registration("agent-000")), http.StatusOK)
	wantStatus(t, s.control(t, "deregistration", amptest.Object{"agent": amptest.Object{"id": "agent-001"}}), http.StatusOK)
	wantStatus(t, s.control(t, "registration", registration("agent-256")), http.StatusOK)
	if found := discover(t, s, amptest.Object{"capabilities": []string{"translation"}}); found["total"] != 256.0 {
		t.Errorf("found %v agents", found["total"])
	}
}

// TestLease (M-027, V-M12): a registration without a heartbeat ends, and its next one is refused.
func TestLease(t *testing.T) {
	t.Parallel()
	s := newSite(t, anyAddress, func(o *amp.Options) { o.Lease = time.Millisecond })
	wantStatus(t, s.control(t, "registration", registration("agent-7")), http.StatusOK)
	for deadline := time.Now().Add(time.Minute); strings.Contains(names(discover(t, s, amptest.Object{})["agents"]), "agent-7"); {
		if time.Now().After(deadline) {
			t.Fatal("the lease of a millisecond does not end")
		}
	}
	wantFault(t, s.control(t, "heartbeat", amptest.Object{"agent": amptest.Object{"id": "agent-7"}}), http.StatusUnauthorized, "AUTHENTICATION_FAILED", "NOT_REGISTERED")
}

// TestStrictRegistration (M-026, D-M10, V-M12): in the profile strict an agent that may register takes part when it
// has, and no longer than that. An answer of another is taken, and agents that may not register need not.
func TestStrictRegistration(t *testing.T) {
	t.Parallel()
	s := newSite(t, anyAddress, func(o *amp.Options) { o.Strict = true })
	asks := func() amptest.Reply { return s.send(t, amptest.Mail("agent-7", "echo", "hello")) }
	refused := func(what string, r amptest.Reply) {
		t.Helper()
		if r.Message == nil {
			t.Fatalf("%s: %d %s", what, r.Status, r.Text)
		}
		wantFault(t, r, http.StatusUnauthorized, "AUTHENTICATION_FAILED", "NOT_REGISTERED")
	}
	refused("a question", asks())
	refused("an event", s.send(t, amptest.New("event", "agent-7", "echo", amptest.Object{"event_type": "rain"})))
	refused("a context", s.send(t, amptest.New("request", "agent-7", "context", amptest.Object{"operation": "create"})))
	refused("a delegation", s.send(t, amptest.New("request", "agent-7", "echo", amptest.Object{"delegation": amptest.Object{"subtask": amptest.Object{"capability": "mail.message"}}})))
	wantFault(t, s.send(t, amptest.New("response", "agent-7", "echo", amptest.Object{"status": "success"})), http.StatusNotFound, "AGENT_NOT_FOUND", "MESSAGE_NOT_FOUND")
	wantStatus(t, s.control(t, "registration", registration("agent-7")), http.StatusOK)
	wantText(t, asks(), "hello")
	if r := s.send(t, amptest.Mail("agent-8", "echo", "hello")); r.Message.Message.Type != "error" {
		t.Errorf("another agent is answered %s", r.Text)
	}
	wantStatus(t, s.control(t, "deregistration", amptest.Object{"agent": amptest.Object{"id": "agent-7"}}), http.StatusOK)
	refused("after its end", asks())
	only := gatewaytest.Realm("default", "asker")
	only.May = gateway.Rights{gateway.MayAsk}
	s.rt.Admit("asker-token", only)
	s.rt.AddPartner(gateway.Partner{Name: "asker", Tenant: "default", IDs: []string{"asker*"}, May: only.May})
	s.Client.Token = "asker-token"
	wantText(t, s.send(t, amptest.Mail("asker-1", "echo", "hello")), "hello")
}

// TestCarryToEndpoint (M-029, M-091): a question to a registered agent goes to its own
// endpoint with the credential that it has named, and after the registration to the partner.
func TestCarryToEndpoint(t *testing.T) {
	t.Parallel()
	var shown atomic.Value
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		shown.Store(r.Header.Get("Authorization"))
	}))
	t.Cleanup(endpoint.Close)
	o := newOut(t, anyAddress, func(opt *amp.Options) { opt.EndpointClient = endpoint.Client() })
	o.does(func(http.ResponseWriter, *http.Request) {})
	payload := registration("agent-1")
	payload["endpoints"] = amptest.Object{"invoke": endpoint.URL + "/invoke"}
	wantStatus(t, o.control(t, "registration", payload), http.StatusOK)
	carry := func(id string) {
		t.Helper()
		if got := o.g.Carry(t.Context(), o.p, outgoing(id, mail.Broadcast, "news")); got.State != gateway.Taken {
			t.Fatalf("carried: %+v", got)
		}
	}
	carry("m-1")
	if shown.Load() != "Bearer the-secret-of-the-agent" || len(o.came()) != 0 {
		t.Errorf("the endpoint was shown %v, the partner got %v", shown.Load(), o.came())
	}
	agents, err := o.g.Discover(t.Context(), gateway.Partner{Name: "acme", Tenant: "default"})
	if err != nil || len(agents) != 1 || agents[0].Name != "agent-1" || agents[0].Capabilities[0].ID != "translation" {
		t.Errorf("discovered %v, %v", agents, err)
	}
	wantStatus(t, o.control(t, "deregistration", amptest.Object{"agent": amptest.Object{"id": "agent-1"}}), http.StatusOK)
	carry("m-2")
	if len(o.came()) != 1 {
		t.Errorf("the partner got %v", o.came())
	}
}

// TestRights (M-027, M-057): what a partner's table does not allow is refused with the right that is
// missing, and leaves nothing.
func TestRights(t *testing.T) {
	t.Parallel()
	s := newSite(t, anyAddress)
	plain := gatewaytest.Realm("default", "plain")
	plain.May = gateway.Rights{gateway.MayAsk, gateway.MayTell}
	s.rt.Admit("plain-token", plain)
	s.rt.AddPartner(gateway.Partner{Name: "plain", Tenant: "default", IDs: []string{"agent*"}, May: plain.May})
	own := *s
	own.Token = "plain-token"
	for capability, right := range map[string]string{"registration": "register", "heartbeat": "register", "deregistration": "register", "context-management": "contexts"} {
		r := own.control(t, capability, registration("agent-7"))
		wantFault(t, r, http.StatusForbidden, "AUTHENTICATION_FAILED", "FORBIDDEN")
		if !strings.Contains(r.Text, right) || !strings.Contains(r.Text, "[gateways.amp.partners.plain]") {
			t.Errorf("%s: %s", capability, r.Text)
		}
	}
	event := amptest.New("event", "agent-1", "", amptest.Object{"event_type": "context_update", "context": amptest.Object{"session_id": "s"}})
	wantFault(t, own.send(t, event), http.StatusForbidden, "AUTHENTICATION_FAILED", "FORBIDDEN")
}

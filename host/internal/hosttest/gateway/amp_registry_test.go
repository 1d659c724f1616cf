package gateway_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/hosttest"
)

// ampFile is the file of a host whose gateway to AMP has a partner in each of two tenants. The
// first has a url.
func ampFile(url string) string {
	return strings.Replace(file("hive", fmt.Sprintf(`[gateways.amp]
[gateways.amp.partners.acme]
tenant = "blue"
url = "%s/invoke"
ids = ["agent-*"]
may = ["register", "contexts"]
allow_private = true
[gateways.amp.partners.rival]
tenant = "red"
ids = ["agent-*"]
may = ["register", "contexts"]
[[auth.keys]]
id = "acme"
tenant = "blue"
role = "agent"
key = "the-token-of-acme-at-hive"
[[auth.keys]]
id = "rival"
tenant = "red"
role = "agent"
key = "the-token-of-rival-at-hive"
[[auth.keys]]
id = "op"
role = "operator"
key = "a-key-of-the-operator"
[tenants.blue]
[tenants.red]
`, url)), `expose = ["mcp", "a2a"]`, `expose = ["mcp", "a2a", "amp"]`, 1)
}

// ampControl sends a request that the gateway answers itself, and returns its result.
func ampControl(t *testing.T, s *hosttest.Site, token, capability string, payload amptest.Object) amptest.Reply {
	t.Helper()
	m := amptest.New("request", "agent-1", "registry", payload)
	m.Message.Destination.Capability = capability
	r, err := amptest.Client{URL: s.URL() + "/aip/v1/invoke", Token: token}.Send(m)
	if err != nil || r.Message == nil {
		t.Fatalf("%s: %d %s, %v", capability, r.Status, r.Text, err)
	}
	return r
}

// TestAMPRegistrations (M-027, M-029, V-M38): a registration survives a restart of the host, is
// not seen by another tenant, and goes with its own; the credential is nowhere in clear.
func TestAMPRegistrations(t *testing.T) {
	t.Parallel()
	partner := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(partner.Close)
	s := hosttest.NewSite(t, ampFile(partner.URL))
	const acme, rival = "the-token-of-acme-at-hive", "the-token-of-rival-at-hive"
	finds := func(token string) bool {
		t.Helper()
		r := ampControl(t, s, token, "discovery", amptest.Object{"query": amptest.Object{"capabilities": []string{"translation"}}})
		return strings.Contains(r.Text, "agent-7")
	}
	r := ampControl(t, s, acme, "registration", amptest.Object{
		"agent": amptest.Object{"id": "agent-7"}, "capabilities": []amptest.Object{{"id": "translation"}},
		"endpoints":      amptest.Object{"invoke": partner.URL + "/agent-7"},
		"authentication": amptest.Object{"type": "bearer", "credentials": "the-secret-of-agent-7"},
	})
	if r.Status != http.StatusOK || !finds(acme) || finds(rival) {
		t.Fatalf("registered: %d %s; found %v, by another tenant %v", r.Status, r.Text, finds(acme), finds(rival))
	}
	s.Restart()
	if !finds(acme) {
		t.Error("a restart has lost the registration")
	}
	if bytes.Contains(s.Files(t), []byte("the-secret-of-agent-7")) {
		t.Error("the data directory has the credential in clear")
	}
	if err := s.As(hosttest.OperatorKey).EraseTenant(t.Context(), "blue"); err != nil {
		t.Fatal(err)
	}
	if finds(acme) {
		t.Error("the erasure of the tenant has left the registration")
	}
}

// TestAMPStorage (M-051, M-027): contexts and registrations count in the storage of their tenant, and
// what does not fit is refused with the line to change. Another tenant has its own.
func TestAMPStorage(t *testing.T) {
	t.Parallel()
	s := hosttest.NewSite(t, strings.Replace(ampFile("http://127.0.0.1:9"), "[tenants.blue]", "[tenants.blue]\nstorage = \"1MiB\"", 1))
	create := func(token string) amptest.Reply {
		return ampControl(t, s, token, "context-management", amptest.Object{
			"operation": "create", "context": amptest.Object{"shared_memory": amptest.Object{"x": strings.Repeat("x", 60<<10)}},
		})
	}
	made := 0
	var r amptest.Reply
	for r = create("the-token-of-acme-at-hive"); r.Status == http.StatusOK && made < 100; r = create("the-token-of-acme-at-hive") {
		made++
	}
	if _, _, reason := r.Message.Fault(); r.Status != http.StatusServiceUnavailable || reason != "FULL" || !strings.Contains(r.Text, "[tenants.blue] storage") || made == 0 {
		t.Errorf("after %d contexts: %d %s", made, r.Status, r.Text)
	}
	if r := create("the-token-of-rival-at-hive"); r.Status != http.StatusOK {
		t.Errorf("another tenant: %d %s", r.Status, r.Text)
	}
}

// TestAMPContexts (M-051, M-057, V-M26): a context survives a restart of the host, is not seen by
// another tenant, and goes with its own; what it has is nowhere in clear.
func TestAMPContexts(t *testing.T) {
	t.Parallel()
	s := hosttest.NewSite(t, ampFile("http://127.0.0.1:9"))
	const acme, rival = "the-token-of-acme-at-hive", "the-token-of-rival-at-hive"
	manage := func(token string, payload amptest.Object) amptest.Reply {
		t.Helper()
		return ampControl(t, s, token, "context-management", payload)
	}
	made, _ := manage(acme, amptest.Object{"operation": "create", "context": amptest.Object{
		"shared_memory": amptest.Object{"note": "the-memory-of-blue"}, "access_control": amptest.Object{"write": []string{"*", "*@rival", "agent-1@rival"}},
	}}).Message.Result()["context"].(amptest.Object)
	get := amptest.Object{"operation": "get", "context_id": made["id"]}
	if r := manage(acme, get); !strings.Contains(r.Text, "the-memory-of-blue") {
		t.Fatalf("got %d %s", r.Status, r.Text)
	}
	if r := manage(rival, get); r.Status != http.StatusNotFound || strings.Contains(r.Text, "the-memory-of-blue") {
		t.Errorf("another tenant got %d %s", r.Status, r.Text)
	}
	s.Restart()
	if r := manage(acme, get); !strings.Contains(r.Text, "the-memory-of-blue") {
		t.Errorf("after a restart: %d %s", r.Status, r.Text)
	}
	if bytes.Contains(s.Files(t), []byte("the-memory-of-blue")) {
		t.Error("the data directory has the memory in clear")
	}
	if err := s.As(hosttest.OperatorKey).EraseTenant(t.Context(), "blue"); err != nil {
		t.Fatal(err)
	}
	if r := manage(acme, get); r.Status != http.StatusNotFound {
		t.Errorf("after the erasure: %d %s", r.Status, r.Text)
	}
}

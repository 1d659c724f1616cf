package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/hosttest"
)

// proxyTo starts a proxy, whose address is known before the host's behind it.
func proxyTo(t *testing.T, target *atomic.Pointer[url.URL]) string {
	t.Helper()
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target.Load()) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	t.Cleanup(server.Close)
	return server.URL
}

// ampPartner is a swarm whose agent is exposed to the partner of a mesh, who has a key.
func ampPartner(name, partner, profile, table, more string) string {
	return strings.Replace(file(name, fmt.Sprintf(`%s
[gateways.amp]
profile = %q
[gateways.amp.partners.%s]
allow_private = true
%s
[[auth.keys]]
id = %q
role = "agent"
key = "the-token-of-%s-at-%s"
`, more, profile, partner, table, partner, partner, name)), `"a2a"]`, `"a2a", "amp"]`, 1)
}

// TestAMPJoin (M-026, M-027): the agents of a host register in the mesh of another one, which takes
// nothing of agents that have not. Agents of both then ask each other. They leave when their host stops.
func TestAMPJoin(t *testing.T) {
	t.Parallel()
	var target atomic.Pointer[url.URL]
	proxy := proxyTo(t, &target)
	target.Store(&url.URL{Scheme: "http", Host: "127.0.0.1:1"})
	mesh := hosttest.NewSite(t, ampPartner("mesh", "hive", "strict", fmt.Sprintf(`url = "%s/amp/v1/invoke"
ids = ["*@hive"]
may = ["ask", "register"]
auth_token = "the-token-of-mesh-at-hive"`, proxy), ""))
	hive := hosttest.NewSite(t, ampPartner("hive", "mesh", "default", fmt.Sprintf(`url = "%s/amp/v1/invoke"
ids = ["*@mesh"]
auth_token = "the-token-of-hive-at-mesh"
join = true
join_token = "the-token-of-mesh-at-hive"`, mesh.URL()), fmt.Sprintf("[server]\npublic_url = %q", proxy)))
	at, err := url.Parse(hive.URL())
	if err != nil {
		t.Fatal(err)
	}
	target.Store(at)
	registered := func() bool {
		t.Helper()
		m := amptest.New("request", "boss@hive", "registry", amptest.Object{"query": amptest.Object{"capabilities": []string{"mail.message"}}})
		m.Message.Destination.Capability = "discovery"
		r, err := amptest.Client{URL: mesh.URL() + "/aip/v1/invoke", Token: "the-token-of-hive-at-mesh"}.Send(m)
		if err != nil || r.Status != http.StatusOK {
			t.Fatalf("discovery: %d %s, %v", r.Status, r.Text, err)
		}
		return strings.Contains(r.Text, `"id":"boss@hive"`)
	}
	hosttest.Eventually(t, "the agent of hive is registered", registered)
	for asker, to := range map[*hosttest.Site]string{mesh: "boss%40hive@hive", hive: "boss@mesh"} {
		got := asker.Do(hosttest.AliceKey, "t", hosttest.Step{"send_request", hosttest.Args{"target": to, "subject": "s", "body": "are you there?"}}, hosttest.Step{"await_message", hosttest.Args{}})
		if !strings.Contains(got, "boss got [s] are you there?") {
			t.Errorf("%s answers %s", to, got)
		}
	}
	if err := hive.Stop(); err != nil {
		t.Error(err)
	}
	if registered() {
		t.Error("the agent of hive is registered, and its host has stopped")
	}
}

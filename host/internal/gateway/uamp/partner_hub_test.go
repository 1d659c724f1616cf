package uamp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway/uamp/envelope"
)

// hubOf is a hub list of DIDs.
func hubOf(t *testing.T, agents ...string) string {
	t.Helper()
	hub := envelope.Hub{Version: envelope.HubVersion, Updated: time.Unix(1e9, 0)}
	for _, agent := range agents {
		hub.Manifests = append(hub.Manifests, envelope.Child{Agent: agent, URL: "https://evil.example/manifest", SHA256: strings.Repeat("0", 64)})
	}
	text, err := json.Marshal(hub)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPartnerHub (U-102, V-U15): a partner has the agents that its ids allow and its hub lists,
// each with a manifest that it has signed itself. Addresses in the list are not followed.
func TestPartnerHub(t *testing.T) {
	t.Parallel()
	const other = "did:web:lab.example:teams:blue"
	many := []string{}
	for n := range 101 {
		many = append(many, fmt.Sprintf("did:web:lab.example:agents:n%d", n))
	}
	for name, c := range map[string]struct {
		status     int
		hub        string
		signer     byte
		want, fail string
	}{
		"agents":    {200, hubOf(t, hostDID, "did:web:lab.example", labDID, "did:web:evil.example:agents:x", other), 'l', "x " + other, ""},
		"none":      {404, "", 'l', "", ""},
		"forged":    {200, hubOf(t, labDID), 'e', "", "does not count"},
		"no list":   {200, "{}", 'l', "", "no hub list"},
		"too large": {200, `{"uamp_hub":"1.0","x":"` + strings.Repeat("a", 1<<20) + `"}`, 'l', "", "more than 1048576 bytes"},
		"too many":  {200, hubOf(t, many...), 'l', "", "more than 100 agents"},
		"away":      {503, "", 'l', "", "503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOut(t)
			o.p.IDs = []string{"did:web:lab.example:agents:*", other}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/.well-known/agent-hub.json" {
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.hub)
					return
				}
				id := "did:web:lab.example" + strings.ReplaceAll(strings.TrimSuffix(r.URL.Path, "/agent-manifest.json"), "/", ":")
				w.Header().Set("Content-Type", envelope.ManifestType)
				_, _ = io.WriteString(w, signedManifest(t, key(t, id, private(string(c.signer))), id, manifestOf(nil), time.Now().Add(time.Hour)))
			}))
			t.Cleanup(server.Close)
			o.p.URL = server.URL
			o.rt.AddPartner(o.p)
			agents, err := o.g.Discover(t.Context(), o.p)
			var names []string
			for _, a := range agents {
				names = append(names, a.Name)
			}
			if err == nil && c.want != strings.Join(names, " ") || (err == nil) != (c.fail == "") || err != nil && !strings.Contains(err.Error(), c.fail) {
				t.Errorf("%q, %v", names, err)
			}
		})
	}
	o := newOut(t)
	paths := make(chan string, 10)
	o.p.URL, o.p.Client = "", &http.Client{Transport: atServer{strings.TrimPrefix(o.p.URL, "http://"), paths, http.DefaultTransport}}
	if _, err := o.g.Discover(t.Context(), o.p); err == nil || <-paths != "/.well-known/agent-hub.json" || !strings.Contains(err.Error(), "https://lab.example/.well-known") {
		t.Errorf("a partner without a url: %v", err)
	}
	o.p.Client = nil
	if agents, err := o.g.Discover(t.Context(), o.p); len(agents) > 0 || err != nil {
		t.Errorf("a partner that is not called: %v, %v", agents, err)
	}
}

package directory

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/definition/config"
	"skep/host/internal/peer/registry"
	"skep/host/internal/peer/router"
)

// A peer is called without TLS only where its URL may lead to this machine or to a
// private network; that a host is private itself opens no public address.
func TestPeersWithoutTLS(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url            string
		private, allow bool
		ok             bool
	}{
		{"https://depot.example", false, false, true},
		{"http://depot.example", false, false, false},
		{"http://depot.example", true, false, false},
		{"HTTP://depot.example", true, false, false},
		{"http://93.184.216.34", true, false, false},
		{"http://[2606:4700::1]:81", true, false, false},
		{"http://127.0.0.1:81", true, false, true},
		{"http://localhost:81/mail", true, false, true},
		{"http://10.0.0.9", true, false, true},
		{"http://10.0.0.9", false, false, false},
		{"http://10.0.0.9", false, true, true},
		{"http://depot.lan", false, true, true}, // when it is called, its address decides
	} {
		d := New(Options{Config: &config.Config{Peers: []config.Peer{{Name: "depot", BaseURL: c.url, AuthToken: "the-token", AllowPrivate: c.allow}}}})
		d.allowPrivate = c.private
		if _, err := d.Peer("depot"); (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "use https, or set [peers.depot] allow_private = true") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A partner of a gateway is reached by its carrier, without an address or a token. It has
// no name of a peer, and no swarm is registered under its name (G-012).
func TestPartners(t *testing.T) {
	t.Parallel()
	asked := map[string]router.Peer{"acme": {Gateway: "a2a"}, "depot": {Gateway: "a2a"}, "acp+ab~1": {Gateway: "acp"}}
	d := New(Options{
		Config:       &config.Config{Peers: []config.Peer{{Name: "depot", BaseURL: "https://depot.example", AuthToken: "the-token"}}},
		RegistryFile: filepath.Join(t.TempDir(), "registry.json"), Logger: slog.New(slog.DiscardHandler),
		Partner: func(name string) (router.Peer, bool) {
			p, ok := asked[name]
			return p, ok
		},
	})
	if err := d.OpenRegistry(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	for name, gateway := range map[string]string{"acme": "a2a", "acp+ab~1": "acp", "depot": ""} {
		if p, err := d.Peer(name); p.Gateway != gateway || err != nil {
			t.Errorf("%s is at the gateway %q, %v, want %q", name, p.Gateway, err, gateway)
		}
	}
	if _, err := d.Peer("lab"); err == nil || !strings.Contains(err.Error(), "unknown swarm endpoint") {
		t.Errorf("lab: %v", err)
	}
	for name, words := range map[string]string{"acme": "is a partner of a gateway", "acp+ab~1": "name must be", "mcp+x": "name must be", "depot": "stands in swarm.toml"} {
		_, err := d.Registry().Register(t.Context(), registry.Request{Name: name, BaseURL: "http://127.0.0.1:1", Token: "a-token-of-it"})
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("registered %s: %v, want %q", name, err, words)
		}
	}
}

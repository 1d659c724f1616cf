package directory

import (
	"strings"
	"testing"

	"skep/host/internal/definition/config"
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

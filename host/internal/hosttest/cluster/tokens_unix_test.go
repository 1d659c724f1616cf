//go:build unix

package cluster_test

import (
	"syscall"
	"testing"

	"skep/host/client"
)

// TestStopAfterTokens: a host at which an issued token was used stops in order: it writes the use before it
// leaves the others.
func TestStopAfterTokens(t *testing.T) {
	t.Parallel()
	p := hostsOf(t, 1)[0]
	token, err := p.ClientAs(adminKey).CreateToken(t.Context(), client.TokenWish{Role: "user", ID: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.ClientAs(token.Text).WhoAmI(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitReady(t, p)
	p.Signal(syscall.SIGTERM)
	if code, log := p.End(); code != 0 {
		t.Errorf("the host has ended with code %d: %s", code, log)
	}
}

//go:build unix

package cluster_test

import (
	"strings"
	"syscall"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
	"skep/host/internal/store/pgtest"
)

// useToken makes a token and uses it.
func useToken(t *testing.T, p *hosttest.Process) {
	t.Helper()
	token, err := p.ClientAs(adminKey).CreateToken(t.Context(), client.TokenWish{Role: "user", ID: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.ClientAs(token.Text).WhoAmI(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestStopAfterTokens: a host at which an issued token was used stops in order: it writes the use before it
// leaves the others.
func TestStopAfterTokens(t *testing.T) {
	t.Parallel()
	p := hostsOf(t, 1)[0]
	useToken(t, p)
	waitReady(t, p)
	p.Signal(syscall.SIGTERM)
	if code, log := p.End(); code != 0 {
		t.Errorf("the host has ended with code %d: %s", code, log)
	}
}

// TestStopWithoutServer: a host that has a use of a token to write stops also while the server is away.
func TestStopWithoutServer(t *testing.T) {
	t.Parallel()
	hosttest.SkipOnServer(t, "its hosts share a server of their own")
	server := pgtest.Start(t)
	p := hostsAt(t, 1, server.DSN())[0]
	useToken(t, p)
	waitReady(t, p)
	server.Kill(t)
	p.Signal(syscall.SIGTERM)
	if code, log := p.End(); code < 0 || !strings.Contains(log, "write which tokens were used") {
		t.Errorf("the host has ended with code %d: %s", code, log)
	}
}

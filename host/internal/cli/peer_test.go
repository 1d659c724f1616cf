package cli

import (
	"strings"
	"testing"

	"skep/host/client"
)

// A peer that gets no mail is not shown as if all was well.
func TestPeerWithoutToken(t *testing.T) {
	t.Parallel()
	p := client.Peer{Since: "2026-11-20T15:52:40Z", LettersError: "authentication token missing for swarm 'yard': set the variable SWARM_AUTH_TOKEN_YARD and start the host again"}
	p.Active = true
	if got := peerHealth(p); !strings.HasPrefix(got, "active") || !strings.Contains(got, "it gets no mail: authentication token missing") || !strings.Contains(got, "SWARM_AUTH_TOKEN_YARD") {
		t.Errorf("%q", got)
	}
	p.LettersError = ""
	if got := peerHealth(p); strings.Contains(got, "mail") {
		t.Errorf("%q", got)
	}
}

// A token's file that is not there is named with the flag that names it.
func TestNoPeerTokenFile(t *testing.T) {
	t.Parallel()
	s := newShell(nil, "peer", "add", "yard", "https://yard.example", "--peer-token", "/nowhere/token", "--url", defaultURL)
	if code := Main(t.Context(), s.Env); code != exitNotFound || !strings.Contains(s.stderr.String(), "there is no file /nowhere/token, which --peer-token names") {
		t.Errorf("code %d, stderr %q", code, s.stderr.String())
	}
}

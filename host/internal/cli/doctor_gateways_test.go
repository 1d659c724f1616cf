package cli

import (
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/definition/config"
)

// TestGatewayCheckIsOneLine: names that partners choose add no line to what doctor prints.
func TestGatewayCheckIsOneLine(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	a := newApp(Env{Stdout: &out})
	checks := []gatewayCheck{{Name: "iacp partner depot", Detail: "agents a\npass  key  good\x1b[2K"}}
	if err := a.printChecks(checks, 1, 20); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 1 || strings.Contains(got, "\x1b[2K") || !strings.Contains(got, `agents a\npass`) {
		t.Errorf("got %q", got)
	}
}

// TestIsCalled: a partner is called at its address, over a broker, or where the DID documents
// of its agents say; one that only connects may be away.
func TestIsCalled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gateway string
		p       config.Partner
		want    bool
	}{
		"a topic":                {"acp", config.Partner{Protocol: &config.ACPPartner{Topics: "acp/v1/yard"}}, true},
		"a mailbox":              {"acp", config.Partner{Protocol: &config.ACPPartner{}}, false},
		"queues":                 {"amp", config.Partner{Protocol: &config.AMPPartner{Queues: true}}, true},
		"a WebSocket":            {"amp", config.Partner{Protocol: &config.AMPPartner{}}, false},
		"a host's DIDs":          {"uamp", config.Partner{IDs: []string{"did:key:*", "did:web:lab.example:agents:*"}}, true},
		"DIDs of all hosts":      {"uamp", config.Partner{IDs: []string{"did:web:*"}}, false},
		"keys":                   {"uamp", config.Partner{IDs: []string{"did:key:*"}}, false},
		"an id of another one":   {"iacp", config.Partner{IDs: []string{"did:web:lab.example"}}, false},
		"a caller without a URL": {"a2a", config.Partner{}, false},
	} {
		if got := isCalled(c.gateway, c.p); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestGatewayWithoutAgents: a gateway whose partners only answer needs no exposed agent.
func TestGatewayWithoutAgents(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		partners []client.GatewayPartner
		want     bool
	}{
		"partners that answer":  {[]client.GatewayPartner{{Name: "shop"}, {Name: "lab"}}, true},
		"a partner that asks":   {[]client.GatewayPartner{{Name: "shop"}, {Name: "lab", May: []string{"ask"}}}, false},
		"callers of other ways": {nil, false},
	} {
		var d gatewayDoctor
		d.running(client.Gateway{Name: "amp", Healthy: true, Partners: c.partners})
		if got := d.checks[1]; got.Pass != c.want {
			t.Errorf("%s: %+v, want %v", name, got, c.want)
		}
	}
}

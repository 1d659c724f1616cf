package config

import (
	"strings"
	"testing"
)

// gatewayOf is a gateway of a configuration.
func gatewayOf(c *Config, name string) Gateway {
	for _, g := range c.Gateways {
		if g.Name == name {
			return g
		}
	}
	return Gateway{}
}

func withoutPartners(g Gateway) Gateway {
	g.Partners = nil
	return g
}

func withoutTLS(p Partner) Partner {
	p.TLS = nil
	return p
}

const exposed = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "bundled:script"
comm_targets = ["clerk"]
enable_entrypoint = true
can_complete_tasks = true
[agents.clerk]
source = "bundled:script"
comm_targets = ["boss"]
expose = ["mcp"]
[gateways.mcp]
[gateways.mcp.partners.desk]
agents = ["clerk", "boss"]
may = []
auth_token = "a token in the file"
`

// What works and is probably not meant is a warning: an exposed agent that users cannot
// reach, an agent for a partner that it will not see, a secret in the file.
func TestGatewayWarnings(t *testing.T) {
	t.Parallel()
	c := mustParse(t, exposed)
	for _, want := range []string{
		`13:11: agents.clerk.expose names "mcp", and the agent is no entrypoint`,
		`16:20: gateways.mcp.partners.desk.agents[1]: no agent "boss" of this file exposes itself through "mcp", so desk sees none`,
		`18:1: gateways.mcp.partners.desk.auth_token stands in this file`,
	} {
		if !strings.Contains(c.Warnings.Error(), "swarm.toml:"+want) {
			t.Errorf("no warning %s\n%v", want, c.Warnings)
		}
	}
	if len(c.Warnings) != 3 {
		t.Errorf("warnings:\n%v", c.Warnings)
	}
	if p := c.Gateways[0].Partners[0]; len(p.May) != 0 || p.Tenant != "default" || !p.RetryInDoubt {
		t.Errorf("partner %+v", p)
	}
	text := strings.Replace(exposed, "[agents.clerk]\n", "[agents.clerk]\nenable_entrypoint = true\n", 1)
	if c := mustParse(t, strings.Replace(text, "may = []\n", "", 1)); len(c.Warnings) != 2 || c.Gateways[0].Partners[0].May[0] != "ask" {
		t.Errorf("may %v, warnings:\n%v", c.Gateways[0].Partners[0].May, c.Warnings)
	}
}

// A right for which no message of the protocol asks has no effect.
func TestRightWithoutEffect(t *testing.T) {
	t.Parallel()
	all := `may = ["ask", "tell", "broadcast"]`
	for gateway, want := range map[string][]string{"a2a": {"may[1]", "may[2]"}, "acp": {"may[2]"}, "mcp": {"may[1]", "may[2]"}} {
		c := mustParse(t, strings.NewReplacer("mcp", gateway, "may = []", all).Replace(exposed))
		for _, key := range want {
			if line := key + " has no effect: no message of " + gateway + " asks for this right"; !strings.Contains(c.Warnings.Error(), line) {
				t.Errorf("no warning %q\n%v", line, c.Warnings)
			}
		}
		if n := strings.Count(c.Warnings.Error(), "has no effect"); n != len(want) {
			t.Errorf("%s: %d warnings:\n%v", gateway, n, c.Warnings)
		}
	}
}

// A key that speaks for a name like a partner's is probably misspelt; another name may be a
// swarm that registers later.
func TestKeyForAMisspeltPartner(t *testing.T) {
	t.Parallel()
	keys := func(id string) string {
		return exposed + "[[auth.keys]]\nid = \"" + id + "\"\nrole = \"agent\"\nkey = \"a-key-that-is-long-enough\"\n"
	}
	const want = `auth.keys[0] speaks for "deskk", which is no peer and no partner; did you mean "desk"?`
	if c := mustParse(t, keys("deskk")); !strings.Contains(c.Warnings.Error(), want) {
		t.Errorf("no warning %s\n%v", want, c.Warnings)
	}
	for _, id := range []string{"desk", "orchard"} {
		if c := mustParse(t, keys(id)); strings.Contains(c.Warnings.Error(), "speaks for") {
			t.Errorf("%s:\n%v", id, c.Warnings)
		}
	}
}

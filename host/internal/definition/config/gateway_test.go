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

// An agent that writes to a name like a partner's probably misspells it; so with any other name.
func TestTargetAtAMisspeltPartner(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"*@deskk":   `nothing reaches "*@deskk"; did you mean "*@desk"?`,
		"*@desk":    "",
		"x@orchard": "",
		"*@*":       "",
	} {
		text := strings.Replace(exposed, "[swarm]\n", "[swarm]\nenable_interswarm = true\n", 1)
		text = strings.Replace(text, "comm_targets = [\"boss\"]\n", "enable_interswarm = true\ncomm_targets = [\""+target+"\", \"boss\"]\n", 1)
		got := mustParse(t, text).Warnings.Error()
		if text == exposed || !strings.Contains(got, want) || want == "" && strings.Contains(got, "did you mean") {
			t.Errorf("%s: %s", target, got)
		}
	}
}

// TestGatewayWithoutCallers: what would come out at the first message is told when the file is
// read: a gateway that has no partner, and callers for whom no agent is exposed.
func TestGatewayWithoutCallers(t *testing.T) {
	t.Parallel()
	base, _, _ := strings.Cut(exposed, "expose = ")
	base = strings.Replace(base, "[agents.boss]", "[server]\npublic_url = \"https://hive.example\"\n[agents.boss]", 1)
	const hidden = `no agent of this file exposes itself through "NAME", so callers reach none; add expose = ["NAME"] to an agent`
	const answers = hidden + ", or may = [] to partners that only answer"
	for _, name := range GatewayNames() {
		users := name == "mcp" || name == "a2a"
		for _, c := range []struct{ expose, more, partners, users string }{
			{"", "", "gateways.NAME has no partner, so no message comes or goes; add [gateways.NAME.partners.NAME]", hidden},
			{"", "admit = [\"did:web:*.example.org\"]\nstranger_tenant = \"guests\"\n[tenants.guests]\n", hidden, hidden},
			{"", "[gateways.NAME.partners.desk]\n", answers, hidden},
			{"", "[gateways.NAME.partners.desk]\nmay = []\n", "", hidden},
			{"expose = [\"NAME\"]\n", "", "gateways.NAME has no partner, so no message comes or goes; add [gateways.NAME.partners.NAME]", ""},
			{"expose = [\"NAME\"]\n", "[gateways.NAME.partners.desk]\n", "", ""},
		} {
			want := c.partners
			if users {
				want = c.users
			}
			named := func(text string) string {
				return strings.Replace(strings.ReplaceAll(text, "NAME", name), "partners."+name, "partners.NAME", 1)
			}
			var warned []string
			for _, w := range mustParse(t, base+named(c.expose+"[gateways.NAME]\n")+strings.ReplaceAll(c.more, "NAME", name)).Warnings {
				if w.Path == "gateways."+name {
					warned = append(warned, w.Message)
				}
			}
			if got := strings.Join(warned, "\n"); got != named(want) {
				t.Errorf("%s, %q, %q: %q, want %q", name, c.expose, c.more, got, named(want))
			}
		}
	}
}

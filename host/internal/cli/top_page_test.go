package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"skep/host/client"
)

// The busiest agent is first, or by cost the dearest one, and its tenant.
func TestTopOrder(t *testing.T) {
	t.Parallel()
	n := newTopCounter()
	for tenant, u := range map[string]client.PulseUsage{"a": usageOf(9, 1), "b": usageOf(1, 5), "c": usageOf(5, 3)} {
		n.add(client.PulseEvent{Kind: "turn", State: "ok", Tenant: tenant, Agent: "boss", Usage: &u})
	}
	for byCost, want := range map[bool][2]string{false: {"abc", "acb"}, true: {"bca", "bca"}} {
		n.byCost = byCost
		var tenants, agents string
		for i, p := 0, n.page(); i < len(p.Tenants) && i < len(p.Agents); i++ {
			tenants, agents = tenants+p.Tenants[i].Tenant, agents+p.Agents[i].Tenant
		}
		if tenants != want[0] || agents != want[1] {
			t.Errorf("by cost %t: tenants %s, agents %s, want %v", byCost, tenants, agents, want)
		}
	}
}

// What a page does not show is counted, in its list and below its last line.
func TestTopSaysWhatItCuts(t *testing.T) {
	t.Parallel()
	n := newTopCounter()
	for i := range maxTopAgents + 3 {
		u := usageOf(time.Duration(i), 0)
		n.add(client.PulseEvent{Kind: "turn", State: "ok", Tenant: "acme", Agent: fmt.Sprint("agent", i), Usage: &u})
	}
	n.add(client.PulseEvent{Kind: "refusal", Count: 2})
	s := newShell(nil)
	v := topView{app: &app{env: s.Env}, scope: "host", feeds: newTopFeeds(nil, ""), count: n}
	text := strings.Join(v.app.topLines(v.page()), "\n")
	if !strings.Contains(text, "and 3 more agents; -o json has all") || !strings.Contains(text, "(host)") {
		t.Errorf("the page is\n%s", text)
	}
	v.app.env.Height = 10
	if err := v.draw(); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(s.stdout.String(), "\r\n"); len(lines) != 10 || !strings.Contains(lines[9], "more lines: make the terminal higher") {
		t.Errorf("of 10 lines\n%s", s.stdout.String())
	}
}

// usageOf is the usage of a turn.
func usageOf(cpu time.Duration, microUSD int64) client.PulseUsage {
	var u client.PulseUsage
	u.CPU, u.MicroUSD = cpu, microUSD
	return u
}

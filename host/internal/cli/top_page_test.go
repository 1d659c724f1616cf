package cli

import (
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

// usageOf is the usage of a turn.
func usageOf(cpu time.Duration, microUSD int64) client.PulseUsage {
	var u client.PulseUsage
	u.CPU, u.MicroUSD = cpu, microUSD
	return u
}

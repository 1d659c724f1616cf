package main

import (
	"fmt"
	"strings"
	"sync/atomic"
)

// floodedGateways are the gateways that one tenant floods while another one asks over the
// next of them.
var floodedGateways = []string{"mcp", "a2a", "acp"}

// floodSwarm is a host whose agent answers over the gateways, to users and partners of the
// tenants flood and calm. No rate is limited.
func floodSwarm() string {
	var tables, partners strings.Builder
	for _, name := range floodedGateways {
		fmt.Fprintf(&tables, "[gateways.%s]\nasks = 10_000\n[gateways.%[1]s.rate_limit]\nrequests = 0\n", name)
	}
	for _, tenant := range []string{"flood", "calm"} {
		fmt.Fprintf(&partners, "[gateways.acp.partners.shop-%s]\nids = [\"agent*\"]\ntenant = %[1]q\n", tenant)
		fmt.Fprintf(&partners, "[[auth.keys]]\nid = \"shop-%s\"\nrole = \"agent\"\ntenant = %[1]q\nkey = %q\n", tenant, partnerKey(tenant))
	}
	const server = "[server]\nmax_connections = 0\nmax_streams = 0\nmax_streams_per_principal = 0\n"
	expose := "expose = [\"" + strings.Join(floodedGateways, `", "`) + "\"]\n"
	return strings.Replace(fairSwarm(1), "[[auth.keys]]", expose+tables.String()+server+"[[auth.keys]]", 1) + partners.String()
}

// partnerKey is the key of a tenant's partner over ACP.
func partnerKey(tenant string) string { return "the-key-of-shop-" + tenant }

// gatewayFloods measures how long one message takes over a gateway, alone and while another
// tenant floods another gateway of the host, and the same one. The flood has a process of its
// own. The same flood of another host shows what a busy machine does to the messages.
func gatewayFloods(b *bench) {
	c := must(b.tenantPair(floodSwarm(), false))
	defer c.stop()
	other := must(startHost(b.ctx, floodSwarm()))
	defer other.stop()
	for i, calm := range floodedGateways {
		next, last := floodedGateways[(i+1)%len(floodedGateways)], floodedGateways[(i+2)%len(floodedGateways)]
		floods := []gatewayFlood{{}, {next, c.url, atMost(3)}, {last, c.url, atMost(3)}, {calm, c.url, atMost(3)}, {next, other.url, none()}}
		waits := make([][]float64, len(floods))
		for range b.rounds {
			for j, f := range floods {
				w, err := c.besideGateway(calm, f, b)
				check(named(calm+" beside a flood of "+f.gateway, err))
				waits[j] = append(waits[j], w...)
			}
		}
		for j, f := range floods[1:] {
			name := fmt.Sprintf("over %s, a flood of %s", calm, f.gateway)
			if f.url != c.url {
				name += " on another host"
			}
			b.report.compareTails(name, waits[j+1], "alone", waits[0], f.target)
		}
		b.report.fact("  messages alone", float64(len(waits[0])), count)
	}
}

// gatewayFlood is a gateway that is flooded beside another tenant's messages, and of which
// host; without a gateway there is no flood.
type gatewayFlood struct {
	gateway, url string
	target       *bound
}

// besideGateway measures the messages of the calm tenant over a gateway while the other tenant
// floods one.
func (c *tenantPair) besideGateway(calm string, flooded gatewayFlood, b *bench) ([]float64, error) {
	few := order{URL: c.url, Gateway: calm, Keys: gatewayKeys(calm, "calm"), Clients: 1, Span: b.span}
	much := order{URL: flooded.url, Gateway: flooded.gateway, Keys: gatewayKeys(flooded.gateway, "flood"), Clients: floodClients}
	if flooded.gateway != "" {
		if err := c.flood.to.Encode(much); err != nil {
			return nil, err
		}
	}
	if err := c.calm.to.Encode(few); err != nil {
		return nil, err
	}
	got, err := few.finish(c.calm)
	if err == nil && flooded.gateway != "" {
		_, err = much.finish(c.flood)
	}
	return got.Waits, err
}

// gatewayKeys are the keys of a tenant at a gateway: of its users, or of its partner.
func gatewayKeys(gateway, tenant string) []string {
	if gateway == "acp" {
		return []string{partnerKey(tenant)}
	}
	return fairKeys(tenant)
}

// request is the next message of an order: over the gateway that it names, else over MAIL.
func (o order) request(ids *atomic.Int64) httpRequest {
	switch o.Gateway {
	case "mcp":
		return toolCall(o.URL)
	case "a2a":
		return gatewayA2A(o.URL, "SendMessage", "hello", ids)
	case "acp":
		return acpRequest(o.URL, ids)
	}
	return message(o.URL, o.Body)
}

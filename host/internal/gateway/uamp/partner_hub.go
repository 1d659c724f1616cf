package uamp

import (
	"context"
	"fmt"
	"strings"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/gateway/uamp/hub"
)

// maxListed bounds the agents of a partner's ids that its hub lists.
const maxListed = 100

// Discover implements [gateway.Gateway]: the agents of a partner's ids that its hubs list. Their
// own manifests describe them, since a list is not to be trusted by itself (U-102). A list is
// public: a stream, which needs a credential, is requested besides.
func (g *Gateway) Discover(ctx context.Context, p gateway.Partner) (list []gateway.ForeignAgent, err error) {
	if p.Client == nil {
		return nil, nil // it is not called
	}
	if _, err := heldToken(p); err != nil {
		return nil, err
	}
	for _, base := range hubBases(p) {
		known, err := hub.FetchList(ctx, p.Client, base+hub.ListPath)
		if err != nil {
			return list, fmt.Errorf("the hub list at %s%s: %w", base, hub.ListPath, err)
		}
		if err := gateway.CheckCredential(ctx, Name, p, base+streamPath+"none"); err != nil {
			return list, err
		}
		for _, child := range known.Manifests {
			if id, err := did.Parse(child.Agent); err != nil || child.Err != nil || !p.Owns(child.Agent) || len(id.Path()) == 0 {
				continue // it is a host, or another's
			}
			if len(list) == maxListed {
				return list, gateway.Refuse("the hub list at %s%s has more than %d agents of the partner's ids", base, hub.ListPath, maxListed)
			}
			m, _, err := g.manifests.get(ctx, p, child.Agent)
			if err != nil {
				return list, err
			}
			if m != nil {
				list = append(list, gateway.ForeignAgent{Name: foreignName(p, child.Agent), Description: m.Description, Version: m.Agent})
			}
		}
	}
	return list, nil
}

// hubBases are where a partner's hubs are: its url, or the hosts of its DIDs.
func hubBases(p gateway.Partner) (list []string) {
	if p.URL != "" {
		return []string{strings.TrimSuffix(p.URL, "/")}
	}
	seen := map[string]bool{}
	for _, pattern := range p.IDs {
		parts := strings.Split(pattern, ":")
		if len(parts) < 3 {
			continue
		}
		host, err := did.Parse(strings.Join(parts[:3], ":"))
		if err == nil && host.Host() != "" && !seen[host.Host()] {
			seen[host.Host()] = true
			list = append(list, "https://"+host.Host())
		}
	}
	return list
}

// foreignName is what our agents write before the @ of a partner: the last part of a DID where
// that leads to it, else the whole.
func foreignName(p gateway.Partner, agent string) string {
	name := agent[strings.LastIndexByte(agent, ':')+1:]
	if found, err := foreignDID(p, name+"@"+p.Name); err == nil && found == agent {
		return name
	}
	return agent
}

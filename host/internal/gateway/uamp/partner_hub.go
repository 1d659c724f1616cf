package uamp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/gateway/uamp/envelope"
)

// Limits of the hub lists of partners.
const (
	maxHubList = 1 << 20 // bytes
	maxListed  = 100     // agents of the partner's ids
)

// Discover implements [gateway.Gateway]: the agents of a partner's ids that its hubs list. Their
// own manifests describe them, since a list is not to be trusted by itself (U-102).
func (g *Gateway) Discover(ctx context.Context, p gateway.Partner) (list []gateway.ForeignAgent, err error) {
	if p.Client == nil {
		return nil, nil // it is not called
	}
	for _, base := range hubBases(p) {
		hub, err := readHub(ctx, p, base+hubPath)
		if err != nil {
			return list, fmt.Errorf("the hub list at %s%s: %w", base, hubPath, err)
		}
		for _, child := range hub.Manifests {
			if id, err := did.Parse(child.Agent); err != nil || !p.Owns(child.Agent) || len(id.Path()) == 0 {
				continue // it is a host, or another's
			}
			if len(list) == maxListed {
				return list, gateway.Refuse("the hub list at %s%s has more than %d agents of the partner's ids", base, hubPath, maxListed)
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

// readHub fetches a hub list, which is empty where there is none.
func readHub(ctx context.Context, p gateway.Partner, at string) (h envelope.Hub, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return h, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := p.Client.Do(req)
	if err != nil {
		return h, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNotFound:
		return h, nil
	case http.StatusOK:
	default:
		return h, &gateway.StatusError{Code: resp.StatusCode}
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxHubList+1))
	if err != nil {
		return h, err
	}
	return envelope.ReadHub(text)
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

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// Swarm is a swarm that a host knows, or its own.
type Swarm struct {
	Name    string `json:"swarm_name"`
	BaseURL string `json:"base_url"`
	// Version is the protocol's, empty for a swarm that never answered.
	Version     string   `json:"version"`
	Description string   `json:"swarm_description"`
	Keywords    []string `json:"keywords"`
	Active      bool     `json:"is_active"`
	// LastSeen is an RFC 3339 date-time as the host wrote it, empty for never.
	LastSeen string `json:"last_seen"`
	// Latency is how long it took to answer, in seconds; nil for never.
	Latency  *float64        `json:"latency"`
	Metadata json.RawMessage `json:"metadata"`
}

// Swarms lists the public swarms that the host knows, in its order. It needs no
// token.
func (c *Client) Swarms(ctx context.Context) ([]Swarm, error) {
	var page struct {
		Swarms []Swarm `json:"swarms"`
	}
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/swarms"}, &page)
	return page.Swarms, err
}

// Registration makes a swarm known. Name and BaseURL are required.
type Registration struct {
	Name    string `json:"name"`
	BaseURL string `json:"base_url"`
	// Token is what calls to the swarm show; see the host's documentation for
	// where it is kept.
	Token string `json:"auth_token,omitempty"`
	// Lasting keeps the swarm over the host's restarts.
	Lasting bool `json:"-"`
	// Metadata is a JSON object, or empty.
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// MarshalJSON says the opposite of Lasting, as the host's own default is.
func (r Registration) MarshalJSON() ([]byte, error) {
	type plain Registration
	return json.Marshal(struct {
		plain
		Volatile bool `json:"volatile"`
	}{plain(r), !r.Lasting})
}

// RegisterSwarm makes a swarm known, or changes what is known of it. The result
// is the reference under which the host will look for the token after a restart,
// empty if there is none. It takes an admin.
func (c *Client) RegisterSwarm(ctx context.Context, r Registration) (tokenRef string, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("encode the registration: %w", err)
	}
	var answer struct {
		Ref string `json:"auth_token_ref"`
	}
	_, err = c.do(ctx, call{method: http.MethodPost, path: "/swarms", body: body}, &answer)
	return answer.Ref, err
}

// RemoveSwarm has the host forget a swarm that was registered. It takes an admin,
// and an operator where the host keeps a reference of the token.
func (c *Client) RemoveSwarm(ctx context.Context, name string) error {
	var ignored json.RawMessage
	_, err := c.do(ctx, call{method: http.MethodDelete, path: "/skep/v1/peers/" + url.PathEscape(name)}, &ignored)
	return err
}

// DumpSwarm has the host write its swarm to its log, and returns the swarm's
// name. It takes an admin.
func (c *Client) DumpSwarm(ctx context.Context) (name string, err error) {
	var answer swarmName
	_, err = c.do(ctx, call{method: http.MethodGet, path: "/swarms/dump"}, &answer)
	return answer.Name, err
}

// LoadSwarm puts a definition, a JSON object, in the place of the tenant's, and
// returns its name. Tasks that run go on under the old one. It takes an admin.
func (c *Client) LoadSwarm(ctx context.Context, definition string) (name string, err error) {
	// A map of strings always encodes.
	body, _ := json.Marshal(map[string]string{"json": definition})
	var answer swarmName
	_, err = c.do(ctx, call{method: http.MethodPost, path: "/swarms/load", body: body}, &answer)
	return answer.Name, err
}

type swarmName struct {
	Name string `json:"swarm_name"`
}

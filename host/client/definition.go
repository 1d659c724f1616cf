package client

import (
	"context"
	"encoding/json"
	"net/http"
)

// Definition is what a tenant's new tasks go by.
type Definition struct {
	Tenant string `json:"tenant"`
	Swarm  string `json:"swarm"`
	// Digest is the sha256 of what the definition grants and composes.
	Digest string `json:"digest"`
	// Origin is "file" or "network"; By and At are who loaded it, and when.
	Origin string `json:"origin"`
	By     string `json:"by"`
	At     string `json:"at"`
	// Definition has the shape that [Client.LoadSwarm] takes.
	Definition json.RawMessage `json:"definition"`
}

// Change is a difference between a host's file and what it runs.
type Change struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Change string `json:"change"` // added, changed or removed
	// Widened: it allows something that was refused before. Restart: only a
	// restart applies it.
	Widened bool            `json:"widened"`
	Restart bool            `json:"restart"`
	Before  json.RawMessage `json:"before"`
	After   json.RawMessage `json:"after"`
}

const definitionPath = "/skep/v1/definition"

// Definition returns the definition in force. It takes an admin.
func (c *Client) Definition(ctx context.Context) (d Definition, err error) {
	_, err = c.do(ctx, call{method: http.MethodGet, path: definitionPath, again: true}, &d)
	return d, err
}

// UnloadDefinition puts the definition of the operator's file in force, and
// returns it. It takes an admin.
func (c *Client) UnloadDefinition(ctx context.Context) (d Definition, err error) {
	_, err = c.do(ctx, call{method: http.MethodDelete, path: definitionPath, again: true}, &d)
	return d, err
}

// Plan compares the host's file with what runs. It takes an operator.
func (c *Client) Plan(ctx context.Context) ([]Change, error) {
	return c.changes(ctx, call{method: http.MethodGet, path: "/skep/v1/plan", again: true})
}

// Reload makes the host take its file over, and returns what has changed. It
// takes an operator.
func (c *Client) Reload(ctx context.Context) ([]Change, error) {
	return c.changes(ctx, call{method: http.MethodPost, path: "/skep/v1/reload"})
}

func (c *Client) changes(ctx context.Context, k call) ([]Change, error) {
	var out struct {
		Changes []Change `json:"changes"`
	}
	_, err := c.do(ctx, k, &out)
	return out.Changes, err
}

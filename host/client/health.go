package client

import (
	"context"
	"encoding/json"
	"net/http"
)

// Health is what a host says of itself.
type Health struct {
	// Status is "healthy" until an admin says otherwise.
	Status string `json:"status"`
	Swarm  string `json:"swarm_name"`
	// Since is when the status last changed, an RFC 3339 date-time as the host
	// wrote it.
	Since string `json:"timestamp"`
}

// Health asks how the host is. It needs no token.
func (c *Client) Health(ctx context.Context) (Health, error) {
	var h Health
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/health"}, &h)
	return h, err
}

// SetHealth has the host say another status, which must not be empty. It takes
// an admin.
func (c *Client) SetHealth(ctx context.Context, status string) (Health, error) {
	// A map of strings always encodes.
	body, _ := json.Marshal(map[string]string{"status": status})
	var h Health
	_, err := c.do(ctx, call{method: http.MethodPost, path: "/health", body: body}, &h)
	return h, err
}

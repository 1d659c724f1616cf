package client

import (
	"context"
	"net/http"
)

// Root is what a host shows any caller.
type Root struct {
	Name     string    `json:"name"`
	Protocol string    `json:"protocol_version"`
	Status   string    `json:"status"`
	Uptime   float64   `json:"uptime"` // seconds
	Swarm    SwarmInfo `json:"swarm"`
}

// SwarmInfo describes a swarm.
type SwarmInfo struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Description string   `json:"description"`
	Entrypoint  string   `json:"entrypoint"`
	Keywords    []string `json:"keywords"`
	Public      bool     `json:"public"`
}

// Identity is who the caller is to the host.
type Identity struct {
	ID string `json:"id"`
	// Role is one of MAIL's. The role of an operator, who is more, is admin.
	Role     string `json:"role"`
	Operator bool   `json:"operator"`
}

// Status is what the host does for the caller.
type Status struct {
	Swarm struct {
		Name   string `json:"name"`
		Status string `json:"status"`
	} `json:"swarm"`
	ActiveUsers int  `json:"active_users"`
	MailReady   bool `json:"user_mail_ready"`
	TaskRunning bool `json:"user_task_running"`
}

// Root asks what the host is. It needs no token.
func (c *Client) Root(ctx context.Context) (Root, error) {
	var r Root
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/"}, &r)
	return r, err
}

// WhoAmI asks who the caller is.
func (c *Client) WhoAmI(ctx context.Context) (Identity, error) {
	var id Identity
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/whoami"}, &id)
	return id, err
}

// Status asks what the host does for the caller.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/status"}, &s)
	return s, err
}

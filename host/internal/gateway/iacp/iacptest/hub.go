package iacptest

import (
	"context"
	"fmt"
	"net"
	"slices"
)

// Hub listens for spokes.
type Hub struct {
	net.Listener
	// Token is what a spoke has to show, Features are what a handshake may agree on.
	Token    string
	Features []string
}

// Listen opens a hub at an address.
func Listen(ctx context.Context, address, token string, features ...string) (*Hub, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	return &Hub{l, token, features}, err
}

// Spoke returns the next connection, whose peer has shaken hands and shown its token.
func (h *Hub) Spoke() (*Conn, error) {
	raw, err := h.Accept()
	if err != nil {
		return nil, err
	}
	c := Begun(raw)
	if err := h.admit(c); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return c, nil
}

func (h *Hub) admit(c *Conn) error {
	m, err := c.Read()
	if err != nil {
		return err
	}
	offered, _ := m.Payload["features"].([]any)
	agreed := slices.DeleteFunc(slices.Clone(h.Features), func(f string) bool { return !slices.Contains(offered, any(f)) })
	if m.Type != "handshake" || m.Payload["nonce"] == "" {
		return fmt.Errorf("the first message is %s", m.Raw)
	}
	if err := c.Send(m.Reply("handshake_ack", map[string]any{"version": "1.0", "features": agreed, "auth_required": true, "methods": []string{"token"}}).Text()); err != nil {
		return err
	}
	if m, err = c.Read(); err != nil {
		return err
	}
	if m.Type != "auth" || m.Payload["token"] != h.Token {
		_ = c.Send(m.Reply("error_response", map[string]any{"error_code": "AUTHENTICATION_FAILED", "error_message": "another token is wanted", "retry_allowed": false}).Text())
		return fmt.Errorf("the credential is %s", m.Raw)
	}
	return c.Send(m.Reply("auth_result", map[string]any{"status": "success"}).Text())
}

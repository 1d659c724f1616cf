package egress

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"

	"skep/abi"
)

// Dial opens a connection for a protocol without HTTP, within a policy and with the same
// checks of addresses as a request: to the host and port of an http URL, or with TLS of an
// https URL. ctx needs a deadline. Errors are an *abi.Error with the reasons of
// [Client.Fetch]. The caller closes the connection.
func (c *Client) Dial(ctx context.Context, p Policy, address string) (net.Conn, error) {
	to, err := parseTarget(address)
	if err != nil {
		return nil, fault(abi.CodeInvalid, ReasonRequest, "%v", err)
	}
	h := &hop{client: c, policy: p, scrub: NewScrubber(p.Secrets...), method: http.MethodGet, target: to}
	grant, ok := findGrant(p.Grants, h.method, to)
	if !ok {
		return nil, h.grantError(ReasonGrant, "")
	}
	h.grant = grant
	conn, broken := h.openRaw(ctx, nil)
	if broken != nil {
		return nil, broken
	}
	return conn, nil
}

// openRaw connects, with TLS for https and one of some protocols in its handshake, nil for
// none.
func (h *hop) openRaw(ctx context.Context, protocols []string) (net.Conn, *abi.Error) {
	ctx, cancel := h.withConnectTimeout(ctx)
	defer cancel()
	conn, broken := h.connect(ctx)
	if broken != nil || h.target.scheme == "http" {
		return conn, broken
	}
	config := h.tlsConfig()
	config.NextProtos = protocols
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fault(abi.CodeUnavailable, ReasonTLS, "TLS with %s failed: %s", h.displayURL(), truncate(h.scrub.Text(err.Error())))
	}
	return secure, nil
}

// withConnectTimeout bounds what a connection may take, if the client has a bound for it.
func (h *hop) withConnectTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if h.client.opt.ConnectTimeout > 0 {
		return context.WithTimeout(ctx, h.client.opt.ConnectTimeout)
	}
	return context.WithCancel(ctx)
}

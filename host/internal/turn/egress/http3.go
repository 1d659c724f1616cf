package egress

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/netip"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// Limits of a connection of QUIC.
const (
	maxOtherStreams = 8       // of one direction, which the other end opens: HTTP/3 has three
	maxUnread       = 1 << 20 // bytes of one response that wait to be read
	maxAllUnread    = 4 << 20 // bytes of all responses
)

// http3Transport returns a transport over connections that open opens to a host and port.
func (c *Client) http3Transport(open func(ctx context.Context, address string, q *quic.Config) (*quic.Conn, error)) *http3.Transport {
	return &http3.Transport{
		QUICConfig: &quic.Config{
			MaxIdleTimeout: c.opt.KeepAlive.IdleTimeout, MaxIncomingUniStreams: maxOtherStreams,
			MaxStreamReceiveWindow: maxUnread, MaxConnectionReceiveWindow: maxAllUnread,
		},
		MaxResponseHeaderBytes: int(c.opt.MaxResponseHeader),
		DisableCompression:     true,
		Dial: func(ctx context.Context, address string, _ *tls.Config, q *quic.Config) (*quic.Conn, error) {
			return open(ctx, address, q)
		},
	}
}

// pooledHTTP3 returns a transport that dials with the same checks as a hop.
func (c *Client) pooledHTTP3(r dialRules) *http3.Transport {
	return c.http3Transport(func(ctx context.Context, address string, q *quic.Config) (*quic.Conn, error) {
		h, err := c.pooledHop(ctx, r, "https", address)
		if err != nil {
			return nil, err
		}
		return h.openQUIC(ctx, q)
	})
}

// openQUIC opens the connection of a hop. Nothing is sent before the handshake is over: it
// could be a replay (https://www.rfc-editor.org/rfc/rfc8470.html).
func (h *hop) openQUIC(ctx context.Context, q *quic.Config) (conn *quic.Conn, err error) {
	ctx, cancel := h.withConnectTimeout(ctx)
	defer cancel()
	config := h.tlsConfig()
	config.NextProtos = []string{http3.NextProtoH3}
	broken := h.dialEach(ctx, func(ctx context.Context, to netip.AddrPort) (err error) {
		conn, err = quic.DialAddr(ctx, to.String(), config, q)
		return err
	})
	if broken != nil {
		return nil, &connectError{broken}
	}
	return conn, nil
}

// sendHTTP3 makes the request on a kept connection or, as [Policy.TLS] has it, on one of its
// own, which the end of the response's body closes.
func (h *hop) sendHTTP3(req *http.Request) (*http.Response, error) {
	if h.client.pool != nil && h.policy.TLS == nil {
		rules := h.dialRules()
		rules.http2 = false
		ctx := context.WithValue(req.Context(), pooledKey{}, &pooledRequest{privateKey: h.policy.PrivateKey})
		return h.client.pool3[rules].RoundTrip(req.WithContext(ctx))
	}
	t := h.client.http3Transport(func(_ context.Context, _ string, q *quic.Config) (*quic.Conn, error) {
		return h.openQUIC(req.Context(), q) // the context of a dial has no deadline
	})
	resp, err := t.RoundTrip(req)
	if err != nil {
		_ = t.Close()
		return nil, err
	}
	resp.Body = &onlyBody{resp.Body, t}
	return resp, nil
}

// onlyBody is the body of the one response of a connection.
type onlyBody struct {
	io.ReadCloser
	conn io.Closer
}

// Close implements [io.Closer].
func (b *onlyBody) Close() error {
	defer func() { _ = b.conn.Close() }()
	return b.ReadCloser.Close()
}

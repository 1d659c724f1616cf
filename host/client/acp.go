package client

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/coder/websocket"
)

// ACPConn is a connection to the ACP gateway of a host: one message a text, in both
// directions. Its methods may be called at the same time, but for Read.
type ACPConn struct {
	conn *websocket.Conn
	// MaxBody bounds a message to the host, in bytes: a larger one ends the connection. It
	// is 0 for a host that names no bound.
	MaxBody int64
}

// acpMaxBody is the header field in which a host names its bound.
const acpMaxBody = "Acp-Max-Body"

// maxACPMessage bounds a message of the host, in bytes: twice the protocol's 1 MiB.
const maxACPMessage = 2 << 20

// acpAnswer is how long a host may take to read what was written.
const acpAnswer = 30 * time.Second

// Ended is why a host has ended a connection, and would end the next one.
type Ended struct{ Reason string }

// Error implements error.
func (e *Ended) Error() string { return "the host has ended the connection: " + e.Reason }

// ACP opens a connection to the ACP gateway.
func (c *Client) ACP(ctx context.Context) (conn *ACPConn, err error) {
	err = c.retry(ctx, true, func() error {
		conn, err = c.dialACP(ctx)
		return err
	})
	return conn, err
}

func (c *Client) dialACP(ctx context.Context) (*ACPConn, error) {
	header := http.Header{"User-Agent": {c.opt.UserAgent}}
	if c.opt.Token != "" {
		header.Set("Authorization", "Bearer "+c.opt.Token)
	}
	conn, rsp, err := websocket.Dial(ctx, c.base+"/acp/v1/ws", &websocket.DialOptions{
		HTTPClient: c.upgrading(), HTTPHeader: header, Subprotocols: []string{"acp.v1"},
	})
	switch {
	case err != nil && rsp != nil:
		e := refusal(rsp)
		if wantsTLS(rsp, e.Detail) {
			return nil, &lost{ErrSpeaksTLS}
		}
		return nil, &refused{e, rsp.Header.Get("Retry-After")}
	case err != nil:
		return nil, &lost{err}
	}
	c.reached.Store(true)
	conn.SetReadLimit(maxACPMessage)
	most, _ := strconv.ParseInt(rsp.Header.Get(acpMaxBody), 10, 64) // 0 for none
	return &ACPConn{conn, max(0, most)}, nil
}

// upgrading is the HTTP client for connections that change their protocol, which is
// HTTP/1.1's (https://www.rfc-editor.org/rfc/rfc6455#section-4.1).
func (c *Client) upgrading() *http.Client {
	if c.own == nil {
		return c.http
	}
	t := c.own.Clone()
	t.ForceAttemptHTTP2, t.TLSNextProto = false, map[string]func(string, *tls.Conn) http.RoundTripper{}
	t.DisableKeepAlives = true // nothing is left of a refused one
	if t.TLSClientConfig != nil {
		t.TLSClientConfig.NextProtos = nil
	}
	return &http.Client{Transport: t, CheckRedirect: refuseRedirect}
}

// Read waits for the next message.
func (a *ACPConn) Read(ctx context.Context) ([]byte, error) {
	_, text, err := a.conn.Read(ctx)
	var closed websocket.CloseError
	if errors.As(err, &closed) {
		switch closed.Code {
		case websocket.StatusPolicyViolation, websocket.StatusTryAgainLater, websocket.StatusMessageTooBig, websocket.StatusUnsupportedData:
			return nil, &Ended{closed.Reason}
		}
	}
	return text, err
}

// Fits reports whether the host takes a message of this size.
func (a *ACPConn) Fits(text []byte) bool { return a.MaxBody == 0 || int64(len(text)) <= a.MaxBody }

// Write writes a message.
func (a *ACPConn) Write(ctx context.Context, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, acpAnswer)
	defer cancel()
	return a.conn.Write(ctx, websocket.MessageText, text)
}

// Taken waits until the host has taken what was written: it answers a ping after that. Read
// must be called meanwhile.
func (a *ACPConn) Taken(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, acpAnswer)
	defer cancel()
	return a.conn.Ping(ctx)
}

// Close ends the connection at once.
func (a *ACPConn) Close() { _ = a.conn.CloseNow() }

package iacp

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
)

// features are what a handshake may agree on (I-053).
var features = []string{featureAck, featureProgress}

const (
	featureAck      = "ack"      // each message is acknowledged
	featureProgress = "progress" // a task_request is answered accepted and in_progress first
)

// methodCertificate is the method of a peer whose certificate is its credential.
const methodCertificate = "certificate"

// hello is the payload of a handshake and of its answer.
type hello struct {
	Versions     []string `json:"versions,omitempty"` // of the handshake
	Version      string   `json:"version,omitempty"`  // of the answer
	Features     []string `json:"features"`
	Network      string   `json:"network,omitempty"`
	Agent        string   `json:"agent,omitempty"`
	Nonce        string   `json:"nonce,omitempty"`
	MaxSize      int64    `json:"max_message_size,omitempty"`
	MaxNesting   int      `json:"max_nesting,omitempty"`
	Heartbeat    float64  `json:"heartbeat_interval,omitempty"` // seconds
	AuthRequired bool     `json:"auth_required"`
	Methods      []string `json:"methods,omitempty"`
}

// credential is the payload of an auth, and metadata.auth of a peer without a handshake.
type credential struct {
	Method string `json:"method"`
	Token  string `json:"token"`
	APIKey string `json:"api_key"`
}

// serve serves a connection to its end. When ctx ends, it goes on if its peer is known.
func (g *Gateway) serve(ctx context.Context, raw net.Conn) {
	defer raw.Close()
	c := g.newConn(ctx, raw)
	defer c.end(nil)
	defer c.unguard()
	c.frames.Admit = c.admitUnproven
	defer c.leavePlace()
	_ = raw.SetReadDeadline(time.Now().Add(g.FirstTime))
	if secure, ok := raw.(*tls.Conn); ok {
		if err := secure.HandshakeContext(c.ctx); err != nil {
			c.refuseTLS(err)
			return
		}
		state := secure.ConnectionState()
		c.tls = &state
	}
	shown, err := c.greet()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = c.lateFault()
	}
	if err != nil {
		c.refuseConnection(message.Message{}, err)
		if errors.Is(err, message.ErrTooLarge) || errors.Is(err, gateway.ErrBusy) {
			c.linger()
		}
		return
	}
	c.prove(shown)
}

// newConn returns a connection whose peer is not known yet: when ctx ends, it is closed.
func (g *Gateway) newConn(ctx context.Context, raw net.Conn) *conn {
	c := &conn{g: g, net: raw, frames: message.NewFrameReader(raw, int(g.MaxBody)), agents: map[string]*spoken{}, queue: newQueue(), peerMost: message.MaxSent, readEnded: make(chan struct{})}
	c.ctx, c.end = context.WithCancelCause(context.WithoutCancel(ctx))
	c.unguard = context.AfterFunc(ctx, func() { _ = raw.Close() })
	return c
}

// greet reads what a peer says first: a handshake and its credential, or without a
// handshake a message that has the credential (D-I1).
func (c *conn) greet() (shown credential, err error) {
	first, text, err := c.read()
	if err != nil {
		return shown, err
	}
	if first.Type != message.Handshake {
		c.early = &early{first, text}
		if auth := first.Meta().Auth; auth != nil {
			shown, err = readCredential(auth)
		}
		return shown, err
	}
	if err := c.shake(first); err != nil {
		return shown, err
	}
	if c.tls != nil && len(c.tls.PeerCertificates) > 0 {
		return shown, nil
	}
	_ = c.net.SetReadDeadline(time.Now().Add(c.g.AuthTime))
	for {
		m, _, err := c.read()
		switch {
		case err != nil:
			return shown, err
		case m.Type == message.Heartbeat:
			c.tell(message.HeartbeatAck, m, struct{}{})
		case m.Type != message.Auth:
			return shown, &fault{code: codeAuth, text: "show a credential first, by an auth"}
		default:
			c.auth = m
			return readCredential(m.Payload)
		}
	}
}

func readCredential(raw json.RawMessage) (shown credential, err error) {
	if json.Unmarshal(raw, &shown) != nil {
		err = &fault{code: codeAuth, text: "the credential cannot be read", expected: "token or api_key, a text"}
	}
	return shown, err
}

// shake agrees on a version and on features.
func (c *conn) shake(m message.Message) error {
	var theirs hello
	if err := json.Unmarshal(m.Payload, &theirs); err != nil {
		return &message.Fault{Code: message.InvalidFormat, Text: "the handshake cannot be read", Member: "payload", Expected: "versions and features"}
	}
	if !slices.ContainsFunc(theirs.Versions, func(v string) bool { return v == "1" || strings.HasPrefix(v, "1.") }) {
		return &message.Fault{Code: message.UnsupportedVersion, Text: "no version of the handshake is supported", Member: "payload.versions", Expected: message.Version}
	}
	ours := c.g.hello()
	ours.Version, ours.AuthRequired, ours.Methods = message.Version, c.tls == nil || len(c.tls.PeerCertificates) == 0, methods
	for _, f := range features {
		if slices.Contains(theirs.Features, f) {
			ours.Features = append(ours.Features, f)
		}
	}
	c.agree(theirs)
	return c.tell(message.HandshakeAck, m, ours)
}

// hello is what each handshake has of this host.
func (g *Gateway) hello() hello {
	return hello{Features: []string{}, Network: g.Network, MaxSize: g.MaxBody, MaxNesting: g.MaxDepth, Heartbeat: g.Heartbeat.Seconds()}
}

// agree notes what a handshake has agreed on.
func (c *conn) agree(theirs hello) {
	c.shook, c.acks, c.progress = true, slices.Contains(theirs.Features, featureAck), slices.Contains(theirs.Features, featureProgress)
	if theirs.MaxSize > 0 {
		c.peerMost = min(c.peerMost, theirs.MaxSize)
	}
}

// methods are the ways in which a peer may show who it is (I-072).
var methods = []string{"token", methodCertificate}

// connKey is the key of a connection in the context of its request.
type connKey struct{}

// prove authenticates the peer by a request to the mount, in which the connection is served.
func (c *conn) prove(shown credential) {
	ctx := context.WithValue(c.ctx, connKey{}, c)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, connectionPath, http.NoBody)
	if err != nil {
		return
	}
	r.RequestURI, r.Host, r.RemoteAddr, r.TLS = connectionPath, "127.0.0.1", c.net.RemoteAddr().String(), c.tls
	if token := cmp.Or(shown.Token, shown.APIKey); token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer := &answer{header: http.Header{}}
	c.g.Serve(answer, r)
	if c.served {
		return
	}
	f := &fault{code: codeAuth, text: "the credential is not valid here"}
	if answer.status == http.StatusTooManyRequests || answer.status == http.StatusServiceUnavailable {
		f = &fault{code: codeTimeout, reason: reasonBusy, text: "the host has no place for the connection now", retry: true}
	}
	c.refuseConnection(c.firstOr(c.auth), f)
}

// firstOr is the message of a peer without a handshake, or another.
func (c *conn) firstOr(m message.Message) message.Message {
	if c.early != nil {
		return c.early.Message
	}
	return m
}

// answer is the response to the request of a connection. Only its status counts.
type answer struct {
	header http.Header
	status int
}

// Header implements [http.ResponseWriter].
func (a *answer) Header() http.Header { return a.header }

// Write implements [http.ResponseWriter].
func (a *answer) Write(text []byte) (int, error) {
	a.status = cmp.Or(a.status, http.StatusOK)
	return len(text), nil
}

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) { a.status = cmp.Or(a.status, status) }

// serveProven serves a connection whose peer is known.
func (g *Gateway) serveProven(w http.ResponseWriter, r *http.Request) {
	c, ok := r.Context().Value(connKey{}).(*conn)
	if !ok {
		http.Error(w, "IaCP is not spoken over HTTP: connect to the address in listen of [gateways.iacp]", http.StatusUpgradeRequired)
		return
	}
	caller, err := g.Runtime.Identify(r)
	if err != nil {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	c.served, c.caller = true, caller
	c.leavePlace()
	c.unguard()
	c.ctx, c.end = context.WithCancelCause(r.Context())
	defer c.end(nil)
	c.run()
}

// healthy answers a request of HTTP on the port: who gets it knows that the host serves
// (I-062, I-063).
const healthy = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + `{"status":"ok","protocol":"iacp/1.0"}` + "\n"

// isOver reports whether an error of reading or writing is the end of a connection, which needs no
// answer. Errors of the runtime and its store can look the same: context.DeadlineExceeded is a net.Error.
func isOver(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.As(err, new(net.Error))
}

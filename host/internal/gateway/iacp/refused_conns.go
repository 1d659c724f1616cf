package iacp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
)

// refuseConnection writes to the peer, and records for the operator, why its connection ends before it
// is served. A check of health, and a peer that has left, have no record.
func (c *conn) refuseConnection(m message.Message, err error) {
	if isOver(err) {
		return
	}
	c.refuse(m, err)
	if !errors.Is(err, message.ErrHTTP) {
		c.g.recordRefused(c, err)
	}
}

// refuseTLS ends a connection whose handshake of TLS has failed. A peer that speaks IaCP without TLS can
// read the reason.
func (c *conn) refuseTLS(err error) {
	if plain := new(tls.RecordHeaderError); errors.As(err, plain) && plain.Conn != nil {
		c.net = plain.Conn
		c.refuseConnection(message.Message{}, &fault{code: codeInvalid, text: "the connection is without TLS, and IaCP is with it here", expected: "TLS"})
		c.linger()
		return
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		c.g.recordRefused(c, fmt.Errorf("TLS: %w", err))
	}
}

// lateFault is why a connection ends whose peer was too slow to show who it is.
func (c *conn) lateFault() *fault {
	if c.shook {
		return &fault{code: codeTimeout, text: "no credential came within " + seconds(c.g.AuthTime) + " after the handshake", expected: "an auth", retry: true}
	}
	return &fault{code: codeTimeout, text: "no whole message came within " + seconds(c.g.FirstTime), expected: "a handshake, or a message with metadata.auth", retry: true}
}

// Limits of the records of refused connections.
const (
	refusedTime    = time.Minute
	refusedRecords = 10 // in refusedTime
)

// refusedConns bound the records of refused connections: one of each host that connects, and at most
// refusedRecords, in refusedTime.
type refusedConns struct {
	mu    sync.Mutex
	began time.Time
	hosts map[string]bool
	// left are the connections without a record since the last one.
	left int
}

// admit reports whether a connection has a record, and how many before it had none.
func (r *refusedConns) admit(host string, now time.Time) (left int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.began) >= refusedTime {
		r.began, r.hosts = now, map[string]bool{}
	}
	if r.hosts[host] || len(r.hosts) >= refusedRecords {
		r.left++
		return 0, false
	}
	r.hosts[host] = true
	left, r.left = r.left, 0
	return left, true
}

// recordRefused records for the operator why a connection was refused.
func (g *Gateway) recordRefused(c *conn, err error) {
	from := c.net.RemoteAddr().String()
	host, _, _ := net.SplitHostPort(from)
	left, ok := g.refused.admit(host, time.Now())
	if !ok {
		return
	}
	reason := fmt.Sprintf("%s: %v", from, err)
	if left > 0 {
		reason += fmt.Sprintf(" (%d connections before it have no entry)", left)
	}
	g.Runtime.Record(gateway.Event{Caller: c.caller, Type: "connection", Verdict: "refused", Reason: reason})
}

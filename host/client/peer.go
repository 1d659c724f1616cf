package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"skep/spec/mail"
)

// Peer is a swarm as an admin sees it.
type Peer struct {
	Swarm
	// Entrypoint is the agent there that takes mail without a recipient, empty while
	// unknown.
	Entrypoint string `json:"entrypoint"`
	// Since is when Active became what it is, an RFC 3339 date-time as the host
	// wrote it; empty for a swarm that was never asked. Error is why it is not
	// active.
	Since  string `json:"since"`
	Error  string `json:"error"`
	Public bool   `json:"public"`
	// Volatile entries are forgotten when the host stops; Fixed ones stand in the
	// operator's file. Discovered ones were listed by another swarm.
	Volatile   bool `json:"volatile"`
	Fixed      bool `json:"fixed"`
	Discovered bool `json:"discovered"`
	// LettersError is why mail for it cannot leave the host.
	LettersError string `json:"letters_error"`
}

// Peers lists all swarms that the host knows. It takes an admin.
func (c *Client) Peers(ctx context.Context) ([]Peer, error) {
	var page struct {
		Peers []Peer `json:"peers"`
	}
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/skep/v1/peers"}, &page)
	return page.Peers, err
}

// Pinged is what a swarm came to when it was asked whether it is well.
type Pinged struct {
	Name   string `json:"swarm_name"`
	Active bool   `json:"active"`
	// Latency is the last answer's, in seconds; nil for never.
	Latency *float64 `json:"latency"`
	// Version is the protocol's, empty while unknown.
	Version string `json:"version"`
	// LastSeen is an RFC 3339 date-time as the host wrote it, empty for never.
	LastSeen string `json:"last_seen"`
	// Error is why the swarm is not active, else empty.
	Error string `json:"error"`
}

// PingPeer has the host ask a swarm that it knows whether it is well. That it is
// not is no error. It takes an admin.
func (c *Client) PingPeer(ctx context.Context, name string) (p Pinged, err error) {
	_, err = c.do(ctx, call{method: http.MethodPost, path: "/skep/v1/peers/" + url.PathEscape(name) + "/ping"}, &p)
	return p, err
}

// DeadLetter is a message that no peer has taken.
type DeadLetter struct {
	ID   string `json:"id"`
	Peer string `json:"peer"`
	Task string `json:"task_id"`
	// Instance is whose task it is, as user:alice.
	Instance string       `json:"instance"`
	Reason   string       `json:"reason"`
	Since    time.Time    `json:"since"`
	Died     time.Time    `json:"died"`
	Message  mail.Message `json:"message"`
}

const deadLettersPath = "/skep/v1/dead-letters"

// DeadLetters returns a page of the dead letters of the caller's tenant, newest
// first. Before is the next of the page before, empty for the first; next is
// empty on the last. It takes an admin.
func (c *Client) DeadLetters(ctx context.Context, before string, limit int) (letters []DeadLetter, next string, err error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if before != "" {
		query.Set("before", before)
	}
	var page struct {
		Letters []DeadLetter `json:"dead_letters"`
		Next    string       `json:"next"`
	}
	_, err = c.do(ctx, call{method: http.MethodGet, path: deadLettersPath + "?" + query.Encode()}, &page)
	return page.Letters, page.Next, err
}

// ResendDeadLetter puts a dead letter back on its way. It takes an admin.
func (c *Client) ResendDeadLetter(ctx context.Context, id string) error {
	var ignored json.RawMessage
	_, err := c.do(ctx, call{method: http.MethodPost, path: deadLettersPath + "/" + url.PathEscape(id) + "/resend"}, &ignored)
	return err
}

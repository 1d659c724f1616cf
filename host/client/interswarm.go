package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"skep/spec/mail"
)

// Outbound is a message for agents of this swarm or another. Targets and Body
// are required.
type Outbound struct {
	// Targets are NAME or NAME@SWARM. A request has one.
	Targets []string `json:"targets"`
	Body    string   `json:"body"`
	Subject string   `json:"subject,omitempty"`
	// Type is request, the default, or broadcast.
	Type mail.Type `json:"msg_type,omitempty"`
	Task string    `json:"task_id,omitempty"`
	// UserToken is mandatory in MAIL's body; a skep host never passes it on. Empty
	// means the client's own.
	UserToken string `json:"user_token"`
	// Events asks for the task's log.
	Events bool `json:"stream,omitempty"`
}

// Delivered is what an outbound message came back with.
type Delivered struct {
	Response mail.Message `json:"response"`
	Events   []Event      `json:"events"`
}

// PostInterswarm sends a message and waits for its answer. It is not repeated
// once the host may have begun it. When the other swarm does not answer, the error is
// of status 502 and gives the reason.
func (c *Client) PostInterswarm(ctx context.Context, m Outbound) (Delivered, error) {
	if m.UserToken == "" {
		m.UserToken = c.opt.Token
	}
	body, err := json.Marshal(m)
	if err != nil {
		return Delivered{}, fmt.Errorf("encode the message: %w", err)
	}
	var d Delivered
	_, err = c.do(ctx, call{method: http.MethodPost, path: "/interswarm/message", body: body}, &d)
	return d, err
}

// Taken is the task of a swarm that works on a message of another.
type Taken struct {
	Swarm string `json:"swarm"`
	Task  string `json:"task_id"`
	// Runner is the instance, role:id@swarm.
	Runner string `json:"local_runner"`
}

// Forward hands a message over that starts a task at the host. It takes an agent.
func (c *Client) Forward(ctx context.Context, w mail.Interswarm) (Taken, error) {
	return c.hand(ctx, "/interswarm/forward", w)
}

// Back hands a message over that goes on with a task. It takes an agent.
func (c *Client) Back(ctx context.Context, w mail.Interswarm) (Taken, error) {
	return c.hand(ctx, "/interswarm/back", w)
}

func (c *Client) hand(ctx context.Context, path string, w mail.Interswarm) (Taken, error) {
	body, err := json.Marshal(map[string]mail.Interswarm{"message": w})
	if err != nil {
		return Taken{}, fmt.Errorf("encode the message: %w", err)
	}
	var t Taken
	_, err = c.do(ctx, call{method: http.MethodPost, path: path, body: body}, &t)
	return t, err
}

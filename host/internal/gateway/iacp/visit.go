package iacp

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
)

// visit connects to a partner and serves the connection to its end. up reports whether the
// partner has let us in; wait is how long it wants no other attempt.
func (g *Gateway) visit(ctx context.Context, p gateway.Partner, in *call) (wait time.Duration, up bool, err error) {
	dialing, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	raw, err := p.Dialer.Dial(dialing)
	if err != nil {
		return 0, false, err
	}
	defer raw.Close()
	c := g.newConn(ctx, raw)
	defer c.end(nil)
	defer c.unguard()
	if secure, ok := raw.(*tls.Conn); ok {
		state := secure.ConnectionState()
		c.tls = &state
	}
	_ = raw.SetReadDeadline(time.Now().Add(g.AuthTime))
	if err := c.introduce(p); err != nil {
		var no *refusedCall
		_ = errors.As(err, &no)
		return no.wait(), false, err
	}
	c.unguard()
	c.caller = p.Caller()
	stop := context.AfterFunc(ctx, func() {
		reason := stopping
		if errors.Is(context.Cause(ctx), errChanged) {
			reason = errChanged.Error()
		}
		c.leave(reason)
	})
	defer stop()
	if err := g.conns.add(c); err != nil {
		return 0, false, err
	}
	defer g.conns.remove(c)
	g.calls.set(in, nil)
	c.enrolled = map[string]enrolment{}
	c.running.Go(func() { c.enroll(p) })
	c.converse()
	if err = context.Cause(c.ctx); err == nil || errors.Is(err, context.Canceled) {
		err = errors.New("the partner has ended it")
	}
	return 0, true, err
}

// refusedCall is an error_response of a partner to what opens a connection.
type refusedCall struct {
	code, text string
	after      float64 // seconds
}

// Error implements error.
func (r *refusedCall) Error() string {
	return fmt.Sprintf("the partner refuses the connection: [%s] %.300s", codeOf(r.code), r.text)
}

func (r *refusedCall) wait() time.Duration {
	if r == nil || r.after <= 0 {
		return 0
	}
	return min(time.Duration(r.after*float64(time.Second)), lastPause)
}

// introduce shakes hands with a partner that was called, and shows it our credential.
func (c *conn) introduce(p gateway.Partner) error {
	ours := c.g.hello()
	ours.Versions, ours.Features, ours.Agent, ours.Nonce = []string{message.Version}, features, c.g.Network, rand.Text()
	var theirs hello
	if err := c.demand(message.Handshake, ours, message.HandshakeAck, &theirs); err != nil {
		return err
	}
	if major, _, _ := strings.Cut(theirs.Version, "."); major != "1" {
		return fmt.Errorf("the partner agrees on version %.20q, and this host speaks %s", theirs.Version, message.Version)
	}
	c.agree(theirs)
	if !theirs.AuthRequired {
		return nil
	}
	shown := credential{Method: "token", Token: p.Dialer.Token()}
	if shown.Token == "" {
		shown = credential{Method: "api_key", APIKey: p.Dialer.APIKey()}
	}
	if shown.Token+shown.APIKey == "" {
		return fmt.Errorf("the partner wants a credential: add auth_token to [gateways.iacp.partners.%s]", p.Name)
	}
	var result struct{ Status string }
	if err := c.demand(message.Auth, shown, message.AuthResult, &result); err != nil {
		return err
	}
	// The document refuses by an error_response (5.4.2) and gives an auth_result no members.
	if result.Status != "" && result.Status != "success" {
		return fmt.Errorf("the partner refuses the credential: auth_result %.40q", result.Status)
	}
	return nil
}

// demand sends a message of the host and reads the one that answers it.
func (c *conn) demand(t message.Type, payload any, want message.Type, into any) error {
	asked := c.compose(t, message.Message{}, payload)
	if err := c.write(asked); err != nil {
		return fmt.Errorf("the partner has sent no %s: %w", want, err)
	}
	for {
		m, _, err := c.read()
		switch {
		case err != nil:
			return fmt.Errorf("the partner has sent no %s: %w", want, err)
		case m.Type == message.Heartbeat:
			_ = c.tell(message.HeartbeatAck, m, struct{}{})
		case m.Type == want:
			if err := json.Unmarshal(m.Payload, into); err != nil {
				return fmt.Errorf("the partner's %s cannot be read: %w", want, err)
			}
			return nil
		case m.Type == message.ErrorResponse, m.Type == message.ConnectionClose:
			var no struct {
				Code   string  `json:"error_code"`
				Text   string  `json:"error_message"`
				Reason string  `json:"reason"`
				After  float64 `json:"retry_after"`
			}
			_ = json.Unmarshal(m.Payload, &no) // without a reason it is refused as well
			return &refusedCall{no.Code, no.Text + no.Reason, no.After}
		}
	}
}

package amp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/wire"
)

// States of a response (M-025).
const (
	statusSuccess = "success"
	statusPartial = "partial"
	statusFailed  = "failed"
)

// responsePayload is the payload of a response.
type responsePayload struct {
	Status   string         `json:"status"`
	Result   any            `json:"result"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

// errLate ends the wait for an answer when its asker waits no more.
var errLate = message.Faultf(message.Timeout, "", "the agent has not answered within timeout_ms")

// await waits for the answer of an exchange, for as long as its asker does (M-023).
func (g *Gateway) await(ctx context.Context, c gateway.Caller, x gateway.Exchange, n note, wait time.Duration) (gateway.Answer, error) {
	by := n.deadline(x.Accepted)
	if by.IsZero() {
		return gateway.Await(ctx, g.Runtime, x, wait)
	}
	late, cancel := context.WithDeadlineCause(ctx, by, errLate)
	defer cancel()
	a, err := gateway.Await(late, g.Runtime, x, wait)
	if ctx.Err() != nil || !errors.Is(context.Cause(late), errLate) || err == nil && a.Outcome != gateway.NeedsInput {
		return a, err
	}
	if a, ok, err := g.Runtime.Look(ctx, x); err == nil && ok && a.Outcome != gateway.NeedsInput {
		return a, nil // it was answered in time
	}
	if err := g.Runtime.Cancel(ctx, c, x.ID, errLate.Text); err != nil && !errors.Is(err, gateway.ErrConflict) {
		g.Log.Warn("amp: a message whose time is over could not be withdrawn", "message", x.ID, "error", err)
	}
	g.measures.end(c, x, time.Now(), false)
	return a, errLate
}

// answerTo returns the message with an answer, the same for each reader of the exchange,
// and its HTTP status.
func (g *Gateway) answerTo(c gateway.Caller, x gateway.Exchange, n note, a gateway.Answer) (message.Message, int) {
	g.measures.end(c, x, a.At, a.Outcome == gateway.Done)
	if a.Outcome == gateway.TimedOut || a.Outcome == gateway.Cancelled && isOver(n, x, a.At) {
		f := message.Faultf(message.Timeout, "", "%s", a.Body)
		m := errorTo(n.received(), f)
		m.ID, m.Timestamp = ownID("answer", c, x.ID), timestamp(a.At)
		return m, f.Status()
	}
	m := n.answer(c, x, "answer", a.At)
	took := max(0, a.At.Sub(x.Accepted).Milliseconds())
	m.Headers.Execution = &took
	m.Payload = wire.MustEncode(g.resultOf(c, n, a))
	return m, http.StatusOK
}

// isOver reports whether a message's time had passed.
func isOver(n note, x gateway.Exchange, at time.Time) bool {
	by := n.deadline(x.Accepted)
	return !by.IsZero() && !at.Before(by)
}

// acceptedTo answers that the message of an exchange was taken.
func (g *Gateway) acceptedTo(c gateway.Caller, x gateway.Exchange, n note) message.Message {
	m := n.answer(c, x, "accepted", x.Accepted)
	metadata := map[string]any{"state": "accepted", "final": false}
	if n.Callback != "" {
		metadata["delegation_id"] = x.ID
	}
	m.Payload = wire.MustEncode(responsePayload{Status: statusPartial, Result: map[string]any{}, Metadata: metadata})
	return m
}

// answer is a response to the noted message without its payload.
func (n note) answer(c gateway.Caller, x gateway.Exchange, what string, at time.Time) message.Message {
	name, _, _ := strings.Cut(n.Agent, "@")
	return message.Message{
		ID: ownID(what, c, x.ID), Type: message.Response, Timestamp: timestamp(at), Source: message.Source{Agent: name, Session: x.Conversation},
		Destination: message.Destination{Agent: n.From, Capability: n.Capability}, Headers: message.Headers{Correlation: x.ID, Tracking: n.Correlation},
	}
}

// resultOf is what an agent's answer is in a response: its object or list, else a member
// text. One that does not fit the output_schema of the capability has failed (M-021).
func (g *Gateway) resultOf(c gateway.Caller, n note, a gateway.Answer) responsePayload {
	metadata := map[string]any{"final": true}
	if a.Subject != "" {
		metadata["subject"] = a.Subject
	}
	addUsage(metadata, a)
	if a.Outcome != gateway.Done {
		metadata["reason"], metadata["message"] = "EXECUTION_ERROR", a.Body
		return responsePayload{Status: statusFailed, Result: map[string]any{}, Metadata: metadata}
	}
	result := json.RawMessage(a.Body)
	if trimmed := bytes.TrimSpace(result); !json.Valid(result) || !bytes.HasPrefix(trimmed, []byte("{")) && !bytes.HasPrefix(trimmed, []byte("[")) {
		result = wire.MustEncode(map[string]string{"text": a.Body})
	}
	if err := g.checkOutput(c, n, result); err != nil {
		metadata["reason"], metadata["message"] = "OUTPUT_SCHEMA", "the result does not fit the output_schema of the capability"
		g.Runtime.Record(gateway.Event{Caller: c, Foreign: n.ID, Type: string(message.Response), Out: true, Verdict: "failed", Reason: err.Error()})
		return responsePayload{Status: statusFailed, Result: map[string]any{}, Metadata: metadata}
	}
	return responsePayload{Status: statusSuccess, Result: result, Metadata: metadata}
}

// checkOutput holds a result against the capability's schema in force.
func (g *Gateway) checkOutput(c gateway.Caller, n note, result json.RawMessage) error {
	a, err := findAgent(g.Runtime.ExposedAgents(c), n.Agent)
	if err != nil {
		return nil // it is exposed no more
	}
	capability, has := findCapability(a, n.Capability)
	if !has || n.Capability == mailCapability {
		return nil
	}
	err = g.schemas.check(capability.ID, capability.Output, result)
	if errors.Is(err, errSchema) {
		g.Log.Warn("amp: the output of a capability is not checked", "capability", capability.ID, "error", err)
		return nil
	}
	return err
}

// responseTo is the response to a message that the gateway answers itself.
func (g *Gateway) responseTo(c gateway.Caller, in message.Received, p responsePayload) message.Message {
	m := message.Message{
		ID: uuid.NewString(), Type: message.Response, Timestamp: timestamp(time.Now()), Source: message.Source{Agent: in.Destination.Agent},
		Destination: message.Destination{Agent: in.Source.Agent, Capability: in.Destination.Capability},
		Headers:     message.Headers{Correlation: in.ID, Tracking: in.Headers.Correlation}, Payload: wire.MustEncode(p),
	}
	if m.Destination.Agent == "" {
		m.Destination.Agent = c.Principal.PeerSwarm()
	}
	return m
}

// errorTo is the error message for a message, whose members may be missing. An id that is longer
// than an id may be is left out.
func errorTo(in message.Received, f *message.Fault) message.Message {
	short := func(id string) string {
		if len(id) > message.MaxID {
			return ""
		}
		return id
	}
	return message.Message{
		ID: uuid.NewString(), Type: message.Error, Timestamp: timestamp(time.Now()), Source: message.Source{Agent: short(in.Destination.Agent)},
		Destination: message.Destination{Agent: short(in.Source.Agent), Capability: short(in.Destination.Capability)},
		Headers:     message.Headers{Correlation: short(in.ID), Tracking: short(in.Headers.Correlation)}, Payload: wire.MustEncode(f.Payload()),
	}
}

// timestamp writes a time as UTC with milliseconds (M-009).
func timestamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// ownID is an id of ours about a message of a caller, the same each time.
func ownID(what string, c gateway.Caller, id string) string {
	key := strings.Join([]string{Name, what, c.Principal.Tenant, c.Realm, id}, "\x1f")
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(key)).String()
}

package iacp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
	"skep/host/internal/gateway/wire"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// errAway is returned while a partner has no connection.
var errAway = errors.New("it has no connection to this host")

// Carry implements [gateway.Carrier]: a message leaves on a connection that the partner has
// opened. A question is held until the foreign agent has answered it. After a restart it is
// sent again under its id.
func (g *Gateway) Carry(ctx context.Context, p gateway.Partner, d swarm.Delivery) gateway.Carried {
	isResponse := d.Wrapper.Type == mail.Response
	if d.Ending || gateway.ReportsPause(d) || !isResponse && mail.Reserved(d.Wrapper.Payload.Subject) {
		return gateway.Carried{State: gateway.Taken} // the protocol has no word for it
	}
	a := &attempt{g: g, p: p, d: d, caller: p.Caller()}
	err := a.run(ctx)
	event := gateway.Event{Caller: a.caller, Foreign: a.m.ID, Type: string(a.m.Type), Out: true, Text: a.text, Task: d.Wrapper.Payload.TaskID}
	g.Runtime.Record(event.WithOutcome(false, err))
	return a.outcomeOf(err)
}

// attempt carries an outbox message once.
type attempt struct {
	g      *Gateway
	p      gateway.Partner
	d      swarm.Delivery
	caller gateway.Caller
	m      message.Message
	text   []byte
	// tried means that sending was begun.
	tried bool
	// result is why the foreign agent has failed, nil where it has taken the message or answered;
	// known is set with it.
	result error
	known  bool
}

// outcomeOf returns what an error means for the outbox message.
func (a *attempt) outcomeOf(err error) gateway.Carried {
	if errors.Is(err, errAway) {
		return gateway.Carried{State: gateway.Later, Reason: err.Error()}
	}
	if open := new(circuitOpenError); errors.As(err, &open) {
		return gateway.Carried{State: gateway.Later, Reason: err.Error(), Wait: open.after}
	}
	return gateway.CarriedAfter(err).Since(a.tried, false)
}

func (a *attempt) run(ctx context.Context) error {
	if err := a.compose(ctx); err != nil {
		return err
	}
	var err error
	if a.text, err = a.g.encode(a.caller, a.m); err != nil {
		return gateway.Refuse("the message cannot be written: %v", err)
	}
	a.m.Payload = nil // it is in the text
	if _, err := a.g.reader.Read(a.text); err != nil {
		return gateway.Refuse("the message is none of IaCP: %v", err)
	}
	c := a.g.conns.find(a.caller, a.m.To())
	if c == nil {
		return errAway
	}
	if a.m.Type.Class() == message.Answers {
		err := a.send(ctx, c)
		if errors.Is(err, errTooLong) {
			err = cmp.Or(c.refuseLong(questionOf(a.m)), err)
		}
		return err
	}
	key := breakerKey{realm: realmOf(a.caller), agent: a.m.To()}
	if after := a.g.breakers.admit(key, time.Now()); after > 0 {
		return &circuitOpenError{a.m.To(), after}
	}
	err = a.send(ctx, c)
	switch {
	case !a.known:
	case a.result == nil && !a.m.Owed():
		a.g.breakers.recordTell(key, c.acks, time.Now())
	default:
		a.g.breakers.record(key, a.result != nil, time.Now())
	}
	return err
}

// end notes what the foreign agent has made of the message.
func (a *attempt) end(result error) error {
	a.known, a.result = true, result
	return result
}

// send sends the message and waits for what it wants.
func (a *attempt) send(ctx context.Context, c *conn) error {
	from := a.m.To()
	if len(a.p.IDs) == 0 { // it has one agent, which is called as the partner is
		from = ""
	}
	sent, end := a.g.waiting.begin(a.caller, a.m.ID, from, &a.d)
	defer end()
	if a.g.early.bring(a.caller, a.m.ID); sent.isAnswered() {
		return sent.outcome()
	}
	a.tried = true
	if err := c.writeText(a.text); err != nil {
		return err
	}
	if c.acks {
		if err := a.wait(ctx, c, sent, sent.acked, a.g.Ack); errors.Is(err, errTime) {
			return a.end(fmt.Errorf("no acknowledgement within %s", seconds(a.g.Ack)))
		} else if err != nil {
			return err
		}
	}
	if !a.m.Owed() || sent.isAnswered() {
		return a.end(sent.outcome())
	}
	if err := a.wait(ctx, c, sent, nil, a.p.Timeout); errors.Is(err, errTime) {
		return a.end(a.late(sent))
	} else if err != nil {
		return err
	}
	return a.end(sent.outcome())
}

// late is why there is no answer in time.
func (a *attempt) late(s *sent) error {
	fault := s.refused()
	switch {
	case errors.As(fault, new(*message.Fault)):
		return gateway.Refuse("%s sent no answer within %s that is a message of IaCP: %v", a.p.Name, a.p.Timeout, fault)
	case fault != nil:
		return gateway.Refuse("%s sent no answer within %s that was taken: %v", a.p.Name, a.p.Timeout, fault)
	}
	return a.p.NoAnswer(Name, nil)
}

// errTime ends a wait.
var errTime = errors.New("the time is over")

// wait waits for an acknowledgement, or else for the answer.
func (a *attempt) wait(ctx context.Context, c *conn, sent *sent, acked <-chan struct{}, limit time.Duration) error {
	timer := newReadTimer(&c.clock, limit)
	defer timer.Stop()
	for {
		select {
		case <-acked:
			return nil
		case <-sent.answered:
			return nil
		case <-timer.C:
			if timer.isOver() {
				return errTime
			}
		case <-c.ctx.Done():
			if sent.isAnswered() {
				return nil
			}
			return errors.New("the connection ended before the answer")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// compose makes the message. Its id is the same in each attempt.
func (a *attempt) compose(ctx context.Context) error {
	p := a.d.Wrapper.Payload
	x, err := a.g.Runtime.Asked(ctx, a.caller, a.d)
	known := err == nil
	if err != nil && !errors.Is(err, gateway.ErrUnknown) {
		return err
	}
	if a.d.Wrapper.Type == mail.Response {
		return a.composeAnswer(ctx, x, known)
	}
	agent, err := gateway.RecipientID(p.Recipient().Name)
	if err != nil {
		return err
	}
	if len(a.p.IDs) > 0 && !a.p.Owns(agent) {
		return gateway.Refuse("%q is none of the agents of %s, so its answer would not count; add it to ids in [gateways.iacp.partners.%[2]s]", agent, a.p.Name)
	}
	sender, _, _ := strings.Cut(p.Sender.Name, "@") // the id under which it is registered
	sender = a.g.agentID(a.caller, a.d.Wrapper.SourceSwarm, sender)
	a.m = message.New(message.TaskRequest, sender, nil)
	a.m.ID, a.m.Timestamp, a.m.Conversation = a.idOf(a.d.Wrapper.MessageID), message.Time(a.d.Since), a.d.Conversation
	if at, err := time.Parse(time.RFC3339Nano, a.d.Wrapper.Timestamp); err == nil {
		a.m.Timestamp = message.Time(at)
	}
	if known {
		a.m.Conversation = x.Conversation
	}
	a.m.Recipient = &message.Recipient{ID: agent}
	asks := a.d.Wrapper.Type == mail.Request || a.d.Wrapper.Type == mail.Interrupt
	a.m.Type, a.m.Payload = payloadOf(p.Subject, p.Body, asks)
	asks = asks && a.m.Type.Class() != message.Answers
	a.m.Metadata = &message.Metadata{RequiresResponse: &asks, Hops: a.d.Hops}
	if limit := a.p.Timeout.Seconds(); asks {
		a.m.Metadata.ResponseTimeout = &limit
	}
	if a.d.Wrapper.Type == mail.Interrupt {
		a.m.Metadata.Priority = "urgent"
	}
	a.d.Trace.Fields(func(name, value string) {
		switch name {
		case "traceparent":
			a.m.Metadata.Traceparent = value
		case "tracestate":
			a.m.Metadata.Tracestate = value
		}
	})
	return nil
}

// idOf is the id of a message as the protocol has ids.
func (a *attempt) idOf(id string) string {
	if parsed, err := uuid.Parse(id); err == nil && parsed.Version() == 4 {
		return parsed.String()
	}
	return ownID("message", a.caller, id)
}

// payloadOf is the payload of an agent's text: as it is, where the text is a typed message
// that wants what the mail wants, or the payload of a question, as steps of bundled:workflow
// are.
func payloadOf(subject, body string, asks bool) (message.Type, json.RawMessage) {
	var own struct {
		typed
		TaskType string `json:"task_type"`
		ToolName string `json:"tool_name"`
	}
	isOwn := isObject(body) && json.Unmarshal([]byte(body), &own) == nil
	class := own.Type.Class()
	switch {
	case isOwn && len(own.Payload) > 0 && (class == message.Asks || class == message.Tells):
		return own.Type, own.Payload
	case isOwn && asks && own.Type == "" && own.TaskType != "" && own.ToolName == "":
		return message.TaskRequest, json.RawMessage(body)
	case isOwn && asks && own.Type == "" && own.ToolName != "" && own.TaskType == "":
		return message.ToolRequest, json.RawMessage(body)
	case asks:
		return message.TaskRequest, wire.MustEncode(map[string]any{
			"task_type": plainTask, "description": subject, "parameters": map[string]string{"subject": subject, "body": body},
		})
	}
	return message.ContextShare, wire.MustEncode(map[string]any{
		"context_type": "insights", "scope": "session", "data": map[string]string{"subject": subject, "body": body},
	})
}

// composeAnswer makes the message with the answer of an exchange.
func (a *attempt) composeAnswer(ctx context.Context, x gateway.Exchange, known bool) error {
	if !known {
		return gateway.Refuse("the message that this answers is kept no more: raise keep in [gateways.iacp]")
	}
	got, ok, err := a.g.Runtime.Look(ctx, x)
	if err == nil && !ok {
		err = errors.New("the exchange has no answer yet")
	}
	var n note
	if err == nil {
		n, err = noteOf(x)
	}
	if err == nil {
		a.m = a.g.answerTo(a.caller, x, n, got)
	}
	return err
}

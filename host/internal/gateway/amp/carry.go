package amp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/wire"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// Carry implements [gateway.Carrier]. A question is held until the foreign agent has
// answered it, in the reply to our request or by a message of its own. The answer to a
// delegated subtask goes to its callback.
func (g *Gateway) Carry(ctx context.Context, p gateway.Partner, d swarm.Delivery) gateway.Carried {
	isResponse := d.Wrapper.Type == mail.Response
	if d.Ending || !isResponse && mail.Reserved(d.Wrapper.Payload.Subject) {
		return gateway.Carried{State: gateway.Taken} // the protocol has no word for it
	}
	a := &attempt{g: g, p: p, d: d, caller: p.Caller(), written: writtenOf(d.Wrapper)}
	err := a.run(ctx, isResponse)
	g.Runtime.Record(gateway.Event{
		Caller: a.caller, Foreign: a.m.ID, Type: string(a.m.Type), Out: true, Text: a.text, Task: d.Wrapper.Payload.TaskID,
	}.WithOutcome(false, err))
	return gateway.CarriedAfter(err).Since(a.tried, a.taken)
}

// attempt carries an outbox message once.
type attempt struct {
	g      *Gateway
	p      gateway.Partner
	d      swarm.Delivery
	caller gateway.Caller
	// to is the foreign id of the recipient, empty for all and for any that has the capability.
	to   string
	m    message.Message
	text []byte
	// socket is the open WebSocket over which the message leaves, nil for none.
	socket *socket
	// queued is set where it leaves by the broker.
	queued bool
	// written is what an action has written, zero for mail of an agent.
	written written
	// calledBack is set where the answer is sent to a callback.
	calledBack bool
	// trouble is what was wrong last with the place of the answer, nil for nothing.
	trouble error
	// tried means that sending was begun, taken that the partner has the message.
	tried, taken bool
}

func (a *attempt) run(ctx context.Context, isResponse bool) error {
	if isResponse {
		return a.callBack(ctx)
	}
	if a.written.toAll() {
		if done, err := a.notifyAll(ctx); done || err != nil {
			return err
		}
	}
	if err := a.findWay(ctx); err != nil {
		return err
	}
	if err := a.compose(ctx); err != nil {
		return err
	}
	var err error
	if a.text, err = a.g.write(a.caller, a.g.Token, a.m); err != nil {
		return gateway.Refuse("the message cannot be written: %v", err)
	}
	if a.m.Type == message.Event {
		return a.tell(ctx)
	}
	if a.calledBack {
		if err := a.g.keepDelegation(ctx, a.p, a.d); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, a.p.Timeout, errNoAnswer)
	defer cancel()
	err = a.ask(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errNoAnswer) {
		return a.p.NoAnswer(Name, a.trouble)
	}
	return err
}

// errNoAnswer ends the wait for an answer.
var errNoAnswer = errors.New("no answer in time")

// urgentPriority and normalPriority are the priorities of our messages (D-M5).
const (
	urgentPriority = 9.0
	normalPriority = 5.0
)

// compose makes the message of an agent of ours. Its id is the same in each attempt.
func (a *attempt) compose(ctx context.Context) error {
	p := a.d.Wrapper.Payload
	session, err := a.session(ctx)
	if err != nil {
		return err
	}
	priority, timeout := normalPriority, float64(a.p.Timeout.Milliseconds())
	a.m = message.Message{
		ID: a.d.Wrapper.MessageID, Type: message.Request, Timestamp: timestamp(a.sentAt()),
		Source:      message.Source{Agent: p.Sender.Name, Session: session},
		Destination: message.Destination{Agent: a.to},
		Headers:     message.Headers{Correlation: a.d.Wrapper.MessageID, Hints: map[string]json.RawMessage{hintHops: wire.MustEncode(a.d.Hops)}},
	}
	if a.d.Wrapper.Type == mail.Interrupt {
		priority = urgentPriority
	}
	a.m.Headers.Priority, a.m.Headers.Timeout = &priority, &timeout
	a.m.Headers.Hints = gateway.WithTrace(a.m.Headers.Hints, "", a.d.Trace)
	if p.Subject != "" {
		a.m.Headers.Hints[hintSubject] = wire.MustEncode(p.Subject)
	}
	if a.d.Wrapper.Type == mail.Broadcast {
		a.m.Type, a.m.Headers.Timeout = message.Event, nil
		a.m.Payload = wire.MustEncode(a.written.event(p.Subject, p.Body))
		return nil
	}
	if a.written.delegates() {
		return a.composeDelegation()
	}
	called, parameters := calledOf(p.Subject, p.Body)
	a.m.Destination.Capability = called
	a.m.Payload = wire.MustEncode(map[string]any{"capability": called, "parameters": parameters})
	return nil
}

// session is the conversation of the message: the partner's own where it has begun the task.
func (a *attempt) session(ctx context.Context) (string, error) {
	x, err := a.g.Runtime.Asked(ctx, a.caller, a.d)
	switch {
	case err == nil:
		return x.Conversation, nil
	case errors.Is(err, gateway.ErrUnknown):
		return a.d.Conversation, nil
	}
	return "", err
}

// calledOf is the capability that an agent's text asks for: a JSON object of capability and
// parameters, or else the text itself.
func calledOf(subject, body string) (capability string, parameters any) {
	var call struct {
		Capability string                     `json:"capability"`
		Parameters map[string]json.RawMessage `json:"parameters"`
	}
	if strings.HasPrefix(strings.TrimSpace(body), "{") && json.Unmarshal([]byte(body), &call) == nil && call.Capability != "" && call.Parameters != nil {
		return call.Capability, call.Parameters
	}
	return mailCapability, map[string]string{"subject": subject, "body": cmp.Or(body, subject)}
}

// sentAt is when the message was written; a signed one is sent anew each time.
func (a *attempt) sentAt() time.Time {
	at, err := time.Parse(time.RFC3339Nano, a.d.Wrapper.Timestamp)
	if err != nil || len(a.p.HMACKey) > 0 {
		return time.Now()
	}
	return at
}

// callBack sends the answer of a delegated subtask to its callback (M-035). It is the same
// message in each attempt.
func (a *attempt) callBack(ctx context.Context) error {
	x, err := a.g.Runtime.Asked(ctx, a.caller, a.d)
	if errors.Is(err, gateway.ErrUnknown) {
		return gateway.Refuse("the message that this answers is kept no more: raise keep in [gateways.amp]")
	}
	if err != nil {
		return err
	}
	n, err := readNote(x)
	if err != nil {
		return err
	}
	got, ok, err := a.g.Runtime.Look(ctx, x)
	if err == nil && !ok {
		err = errors.New("the exchange has no answer yet")
	}
	if err != nil {
		return err
	}
	a.m, _ = a.g.answerTo(a.caller, x, n, got)
	if len(a.p.HMACKey) > 0 {
		a.m.Timestamp = timestamp(time.Now()) // its receiver refuses a signature that is old
	}
	if a.text, err = a.g.write(a.caller, n.Token, a.m); err != nil {
		return gateway.Refuse("the answer cannot be written: %v", err)
	}
	a.tried = true
	if n.Queued {
		return a.g.queue.publish(ctx, n.Token, a.m, a.text)
	}
	return a.g.postCallback(ctx, a.p, n.Callback, a.text)
}

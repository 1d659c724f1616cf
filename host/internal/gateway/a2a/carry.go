package a2a

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// Carry implements [gateway.Carrier]. A request is held until the foreign agent has
// answered or asks back. A repeat goes on with the foreign task of the attempt before.
func (g *Gateway) Carry(ctx context.Context, p gateway.Partner, d swarm.Delivery) gateway.Carried {
	if d.Ending {
		return gateway.Carried{State: gateway.Taken} // the protocol has no word for it
	}
	e := &attempt{g: g, p: p, d: d, caller: p.Caller()}
	err := e.run(ctx)
	event := gateway.Event{Caller: e.caller, Foreign: d.Wrapper.MessageID, Type: string(d.Wrapper.Type), Out: true, Text: []byte(d.Wrapper.Payload.Body), Task: d.Wrapper.Payload.TaskID}
	g.Runtime.Record(event.WithOutcome(false, err))
	return e.outcomeOf(err)
}

// outcomeOf returns what an error means for the message.
func outcomeOf(err error) gateway.Carried {
	if errors.As(err, new(*a2a.Error)) && !errors.Is(err, a2a.ErrInternalError) && !errors.Is(err, a2a.ErrServerError) {
		return gateway.Carried{State: gateway.Refused, Reason: err.Error()}
	}
	return gateway.CarriedAfter(err)
}

func (e *attempt) outcomeOf(err error) gateway.Carried { return outcomeOf(err).Since(e.tried, false) }

// attempt carries a message once.
type attempt struct {
	g      *Gateway
	p      gateway.Partner
	d      swarm.Delivery
	caller gateway.Caller
	record conversationRecord
	// tried means that sending was begun, by this attempt or one before.
	tried bool
	// unstored is set for an action, whose record is the turn's.
	unstored bool
	// chunks counts the pieces of the answer that were shown.
	chunks int64
}

func (e *attempt) run(ctx context.Context) error {
	if shown, err := e.isShown(ctx); err != nil || shown {
		return err
	}
	if err := e.load(ctx); err != nil {
		return err
	}
	client, card, err := e.g.connect(ctx, e.p)
	if err != nil {
		return err
	}
	defer client.Destroy()
	f := &foreignTask{attempt: e, client: client, streams: card.Capabilities.Streaming}
	switch e.d.Wrapper.Type {
	case mail.Interrupt, mail.Request:
		if !e.cancels() {
			return e.await(ctx, f, openMessage{Answers: e.d.Wrapper.Payload.ID}, f.begin)
		}
		if e.record.Open == nil {
			return nil
		}
		return f.cancel(ctx, e.record.Open.Task)
	case mail.Response:
		return e.reply(ctx, f)
	}
	_, err = f.sendOneWay(ctx, "")
	return err
}

// isShown reports whether the message is a question in the course of a foreign agent's
// task of ours, whose state shows it.
func (e *attempt) isShown(ctx context.Context) (bool, error) {
	if e.d.Answers == "" || e.d.Wrapper.Type != mail.Request {
		return false, nil
	}
	x, err := e.g.Runtime.Asked(ctx, e.caller, e.d)
	if errors.Is(err, gateway.ErrUnknown) {
		return false, nil
	}
	_, noQuestion := askedBy(x)
	return noQuestion != nil, err
}

// cancels reports whether the message calls off the request that is under way.
func (e *attempt) cancels() bool {
	return e.d.Wrapper.Type == mail.Interrupt && strings.HasPrefix(strings.ToLower(e.d.Wrapper.Payload.Subject), "cancel")
}

// await makes a message the one under way, sends it, waits for what comes of it and hands
// that to the runtime, within the partner's time for an answer.
func (e *attempt) await(ctx context.Context, f *foreignTask, m openMessage, send func(context.Context) error) error {
	first, err := e.open(ctx, m)
	if err != nil {
		return err
	}
	e.tried = e.tried || !first
	limit := e.record.Open.Since.Add(e.p.Timeout)
	timed, cancel := context.WithDeadlineCause(ctx, limit, errNoAnswer)
	defer cancel()
	err = send(timed)
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(timed), errNoAnswer) {
		err = f.giveUp(ctx)
	}
	if first && e.record.Open.Task == m.Task && e.outcomeOf(err).State == gateway.Later {
		e.record.Open = nil // it was not sent: its time has not begun
		return errors.Join(err, e.store(ctx))
	}
	if err != nil {
		return err
	}
	if err := f.deliver(ctx); err != nil {
		return err
	}
	e.record.Open = nil
	return e.store(ctx)
}

// reply brings the answer of our agent to the foreign task that asked.
func (e *attempt) reply(ctx context.Context, f *foreignTask) error {
	x, err := e.g.Runtime.Asked(ctx, e.caller, e.d)
	if errors.Is(err, gateway.ErrUnknown) {
		return gateway.Refuse("no foreign task waits for this answer")
	}
	if err != nil {
		return err
	}
	asked, err := askedBy(x)
	if err != nil {
		return gateway.Refuse("no foreign task waits for this answer")
	}
	e.record.Context = asked.Context
	return e.await(ctx, f, openMessage{Answers: asked.Answers, Task: asked.Task}, f.goOn)
}

// message is our message in the protocol's form. Its id is the same in each attempt.
func (e *attempt) message(task a2a.TaskID) *a2a.SendMessageRequest {
	p := e.d.Wrapper.Payload
	m := &a2a.Message{ID: e.d.Wrapper.MessageID, Role: a2a.MessageRoleUser, ContextID: e.record.Context, TaskID: task, Parts: partsOf(cmp.Or(p.Body, p.Subject))}
	for name, value := range metadataOf(p.RoutingInfo) {
		m.SetMeta(name, value)
	}
	m.SetMeta(metaHops, e.d.Hops)
	if p.Subject != "" {
		m.SetMeta("skep_subject", p.Subject)
	}
	e.d.Trace.Fields(func(name, value string) { m.SetMeta(name, value) })
	return &a2a.SendMessageRequest{Message: m}
}

// metadataOf is the metadata that an action gave its message.
func metadataOf(routing json.RawMessage) map[string]any {
	var info struct {
		Gateway struct {
			Metadata map[string]any `json:"metadata"`
		} `json:"gateway"`
	}
	if json.Unmarshal(routing, &info) != nil { // it is there for messages of actions only
		return nil
	}
	return info.Gateway.Metadata
}

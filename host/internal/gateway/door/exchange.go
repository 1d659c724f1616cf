package door

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// newExchange is a submission as gateways see it.
func newExchange(c gateway.Caller, r *swarm.Receipt) gateway.Exchange {
	s := r.Submission()
	id := s.Key
	if !c.IsUser() {
		id = strings.TrimPrefix(id, swarm.RemoteKey(c.Realm, ""))
	}
	return gateway.Exchange{
		Caller: c, ID: id, Agent: s.Agent, Task: r.Task, Conversation: r.Task.Task, Accepted: s.Accepted, Cursor: s.Cursor,
		Answered: s.Answer, Duplicate: r.Duplicate, Note: s.Note, Receipt: r,
	}
}

// Find is [gateway.Runtime]'s. The message may be in any of the served swarms.
func (d *Door) Find(ctx context.Context, c gateway.Caller, id string) (gateway.Exchange, error) {
	for _, name := range d.swarms(c) {
		r, err := d.opt.Swarm.FindExchange(ctx, principal(c).Instance(name), d.name, exchangeKey(c, id))
		switch err := foreignError(ctx, err); {
		case err == nil:
			return newExchange(c, r), nil
		case !isUnknown(err):
			return gateway.Exchange{}, err
		}
	}
	return gateway.Exchange{}, unknown("no message %q", id)
}

// Asked is [gateway.Runtime]'s.
func (d *Door) Asked(ctx context.Context, c gateway.Caller, response swarm.Delivery) (gateway.Exchange, error) {
	key := cmp.Or(response.Answers, swarm.RemoteKey(c.Realm, response.Wrapper.Payload.ID))
	r, err := d.opt.Swarm.FindExchange(ctx, response.Task.InstanceKey, d.name, key)
	if err != nil {
		return gateway.Exchange{}, foreignError(ctx, err)
	}
	return newExchange(c, r), nil
}

// List is [gateway.Runtime]'s.
func (d *Door) List(ctx context.Context, c gateway.Caller, before string, limit int) (list []gateway.Exchange, err error) {
	if err := d.checkRequestRate(ctx, c); err != nil {
		return nil, err
	}
	var from swarm.Submission
	if before != "" {
		x, err := d.Find(ctx, c, before)
		if err != nil {
			return nil, err
		}
		from = x.Receipt.Submission()
	}
	for _, name := range d.swarms(c) {
		if from.Task != "" && from.Instance.Swarm != name {
			continue
		}
		receipts, err := d.opt.Swarm.Exchanges(ctx, principal(c).Instance(name), d.name, from, limit-len(list))
		if err != nil {
			return nil, foreignError(ctx, err)
		}
		for _, r := range receipts {
			list = append(list, newExchange(c, r))
		}
		if from = (swarm.Submission{}); len(list) == limit {
			break
		}
	}
	return list, nil
}

// swarms are the names of the swarms in which the caller sees agents.
func (d *Door) swarms(c gateway.Caller) (names []string) {
	for _, a := range d.opt.ExposedAgents(c) {
		if len(names) == 0 || names[len(names)-1] != a.Swarm {
			names = append(names, a.Swarm)
		}
	}
	return names
}

// Look is [gateway.Runtime]'s.
func (d *Door) Look(ctx context.Context, x gateway.Exchange) (gateway.Answer, bool, error) {
	if x.Receipt == nil {
		return gateway.Answer{}, false, notOwed(x)
	}
	s, err := d.opt.Swarm.LookExchange(ctx, x.Receipt, swarm.Event{})
	if err != nil {
		return gateway.Answer{}, false, foreignError(ctx, err)
	}
	if s.Answer.Cursor == 0 && len(s.Needs) == 0 {
		return gateway.Answer{}, false, nil
	}
	a, err := d.meteredAnswer(ctx, s, x)
	return a, err == nil, err
}

// meteredAnswer is the answer with what it has cost.
func (d *Door) meteredAnswer(ctx context.Context, s swarm.ExchangeState, x gateway.Exchange) (gateway.Answer, error) {
	a, err := newAnswer(s, x)
	if err != nil || !s.Answer.Metered {
		return a, err
	}
	use, err := d.opt.Swarm.ModelUse(ctx, x.Task, x.Cursor, s.Answer.Cursor)
	a.Tokens, a.Models = use.Tokens, use.Models
	return a, err
}

// Wait is [gateway.Runtime]'s.
func (d *Door) Wait(ctx context.Context, x gateway.Exchange) (gateway.Answer, error) {
	if x.Receipt == nil {
		return gateway.Answer{}, notOwed(x)
	}
	s, err := d.opt.Swarm.WaitExchange(ctx, x.Receipt, nil)
	if err != nil {
		return gateway.Answer{}, foreignError(ctx, err)
	}
	return d.meteredAnswer(ctx, s, x)
}

// notOwed refuses to read the answer to a message that gets none.
func notOwed(x gateway.Exchange) error { return unknown("the message %q gets no answer", x.ID) }

// Cancel is [gateway.Runtime]'s.
func (d *Door) Cancel(ctx context.Context, c gateway.Caller, id, reason string) error {
	x, err := d.Find(ctx, c, id)
	if err != nil {
		return err
	}
	by := "its caller"
	if reason != "" {
		by += ": " + reason
	}
	return foreignError(ctx, d.opt.Swarm.CancelExchange(ctx, x.Receipt, by))
}

// newAnswer is the state of an exchange as its caller may see it.
func newAnswer(s swarm.ExchangeState, x gateway.Exchange) (gateway.Answer, error) {
	if s.Answer.Cursor > 0 {
		return finalAnswer(s.Answer, x), nil
	}
	a := gateway.Answer{Outcome: gateway.NeedsInput}
	if s.Calls != "" {
		var calls []struct {
			ID        string `json:"call_id"`
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		}
		if err := json.Unmarshal([]byte(s.Calls), &calls); err != nil {
			return gateway.Answer{}, fmt.Errorf("read the calls that wait for people: %w", err)
		}
		for _, c := range calls {
			a.Questions = append(a.Questions, gateway.Question{ID: c.ID, Call: c.ID, Text: c.Name + " " + c.Arguments})
		}
	}
	for _, m := range s.Questions {
		a.At = m.Time()
		a.Questions = append(a.Questions, gateway.Question{ID: m.Payload.ID, From: m.Payload.Sender.Name, Text: m.Payload.Body})
	}
	return a, nil
}

// failureText replaces the system's text, which names limits, causes and agents. A failure
// has the id of its task, by which the operator finds the cause, if the task is the caller's:
// the id of another's is that user's choice.
func failureText(a swarm.Answer, x gateway.Exchange) string {
	switch a.State {
	case swarm.StateTimedOut:
		return "The time for the request is over."
	case swarm.StateCancelled:
		return "The request was cancelled."
	}
	text := "The agent could not complete the request."
	if a.Subject == mail.SubjectRuntimeError { // it stalled, or its steps were over
		text = "The task ended, and no agent has answered the request."
	}
	if x.Task.InstanceKey == principal(x.Caller).Instance(x.Task.Swarm) {
		text += " The task is " + x.Task.Task + "."
	}
	return text
}

// finalAnswer is an answer without what is internal.
func finalAnswer(a swarm.Answer, x gateway.Exchange) gateway.Answer {
	out := gateway.Answer{Outcome: gateway.Done, Subject: a.Subject, Body: a.Body, From: a.Caller, At: a.At, Cursor: a.Cursor}
	switch a.State {
	case swarm.StateFailed:
		out.Outcome = gateway.Failed
	case swarm.StateTimedOut:
		out.Outcome = gateway.TimedOut
	case swarm.StateCancelled:
		out.Outcome = gateway.Cancelled
	default:
		if mail.Reserved(out.Subject) { // of a completion
			out.Subject = ""
		}
		out.Parts = partsOf(a.Body)
		return out
	}
	out.Subject, out.Body = "", failureText(a, x)
	return out
}

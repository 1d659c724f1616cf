package door

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// defaultSubject is the subject of a message whose protocol has none.
const defaultSubject = "New Message"

// Ask is [gateway.Runtime]'s.
func (d *Door) Ask(ctx context.Context, c gateway.Caller, a gateway.Ask) (gateway.Exchange, error) {
	if err := d.checkAsk(c, a); err != nil {
		return gateway.Exchange{}, err
	}
	unique := a.ID == ""
	if f := swarm.ForwardingOf(ctx); unique && f != nil {
		a.ID, unique = f.Key, false // it may come again, through another host
	} else if unique {
		a.ID = uuid.NewString()
	}
	if err := d.checkRate(ctx, c, a); err != nil {
		return gateway.Exchange{}, err
	}
	blobs := d.blobs(a)
	info, err := routingInfo(a, blobs)
	if err != nil {
		return gateway.Exchange{}, err
	}
	if c.IsUser() {
		return d.askAsUser(ctx, c, a, info, blobs, unique)
	}
	return d.askAsRealm(ctx, c, a, info, blobs)
}

// checkRate refuses a caller that sends too much. What the host has fetched itself, as the
// answer to an outbox message, does not count.
func (d *Door) checkRate(ctx context.Context, c gateway.Caller, a gateway.Ask) error {
	if a.Of != nil && !a.Sent {
		return nil
	}
	return d.checkRequestRate(ctx, c)
}

// checkRequestRate is checkCallerRate for a request that another host may have counted.
func (d *Door) checkRequestRate(ctx context.Context, c gateway.Caller) error {
	if f := swarm.ForwardingOf(ctx); f != nil && f.Charged {
		return nil
	}
	return d.checkCallerRate(c)
}

// checkCallerRate counts a message or a list of messages.
func (d *Door) checkCallerRate(c gateway.Caller) error {
	if wait, ok := d.rates.Allow(accountOf(c)); !ok {
		return refuse(&gateway.RateError{Wait: wait}, "too many requests, try again in %s; the limit is [gateways.%s] rate_limit", wait.Round(time.Second), d.opt.Gateway)
	}
	return nil
}

// checkAsk refuses what no caller may send.
func (d *Door) checkAsk(c gateway.Caller, a gateway.Ask) error {
	switch {
	case !a.Deadline.IsZero() && !a.Deadline.After(time.Now()):
		return invalid("the deadline %s is over", a.Deadline.UTC().Format(time.RFC3339))
	case mail.Reserved(a.Subject):
		return invalid("subject must not begin with '::', which is reserved for the system")
	case a.Kind == gateway.Tells && !c.IsUser() && !c.May.Has(gateway.MayTell):
		return denied("%s", c.Missing(d.opt.Gateway, gateway.MayTell))
	case (a.Kind == gateway.Asks || a.Kind == gateway.Interrupts) && a.Of == nil && !c.IsUser() && !c.May.Has(gateway.MayAsk):
		return denied("%s", c.Missing(d.opt.Gateway, gateway.MayAsk))
	case len(a.To) > 1 && (c.IsUser() || !c.May.Has(gateway.MayBroadcast)):
		return denied("a message to %d agents needs the right %q", len(a.To), gateway.MayBroadcast)
	}
	return nil
}

// messageType is the type of a message in MAIL. A tell is a broadcast: it opens no request.
func messageType(k gateway.Kind) mail.Type {
	switch k {
	case gateway.Tells:
		return mail.Broadcast
	case gateway.Interrupts:
		return mail.Interrupt
	case gateway.Answers:
		return mail.Response
	}
	return mail.Request
}

// askAsUser posts a message, as over REST: to entrypoints, in the user's own instance. An
// id that is unique was made for the message.
func (d *Door) askAsUser(ctx context.Context, c gateway.Caller, a gateway.Ask, info json.RawMessage, blobs []swarm.Blob, unique bool) (gateway.Exchange, error) {
	p := swarm.Post{
		Principal: principal(c), Door: d.name, Key: a.ID, UniqueKey: unique, Digest: slices.Clone(a.Digest[:]),
		Type: messageType(a.Kind), Subject: cmp.Or(a.Subject, defaultSubject), Body: a.Body, Trace: a.Trace,
		Info: info, Blobs: blobs, Note: a.Note, Keep: d.opt.Keep,
	}
	if a.Conversation != "" {
		p.Task = taskID(a.Conversation)
	}
	switch a.Kind {
	case gateway.Resumes:
		p.MustExist, p.Results = true, results(a)
		p.Swarm = a.Swarm
	case gateway.Answers:
		return gateway.Exchange{}, invalid("nobody asks a user by a message; results of calls come with %q", gateway.Resumes)
	default:
		agent, err := d.findAgent(c, a.Swarm, recipients(a)[0])
		if err != nil {
			return gateway.Exchange{}, err
		}
		p.Swarm, p.Entrypoint = agent.Swarm, agent.Name
	}
	receipt, err := d.opt.Swarm.Submit(ctx, p)
	if err != nil {
		return gateway.Exchange{}, foreignError(ctx, err)
	}
	x := newExchange(c, receipt)
	x.Agent = cmp.Or(x.Agent, p.Entrypoint)
	return x, nil
}

// askAsRealm receives a message of a realm's agent.
func (d *Door) askAsRealm(ctx context.Context, c gateway.Caller, a gateway.Ask, info json.RawMessage, blobs []swarm.Blob) (gateway.Exchange, error) {
	in, err := d.newIncoming(ctx, c, a)
	if err != nil {
		return gateway.Exchange{}, err
	}
	in.Wrapper.Payload.RoutingInfo, in.Blobs = info, blobs
	got, err := d.opt.Swarm.Receive(ctx, in)
	if err != nil {
		return gateway.Exchange{}, foreignError(ctx, err)
	}
	if len(got.Exchanges) == 0 { // nothing is owed
		return gateway.Exchange{ID: a.ID, Task: got.Task, Conversation: got.Task.Task, Duplicate: got.Duplicate}, nil
	}
	return newExchange(c, got.Exchanges[0]), nil
}

// newIncoming makes the wrapper of a realm's message.
func (d *Door) newIncoming(ctx context.Context, c gateway.Caller, a gateway.Ask) (swarm.Incoming, error) {
	if p, ok := d.opt.Partner(c.Realm); ok && a.Of == nil && a.From != "" && !p.Owns(a.From) {
		return swarm.Incoming{}, denied("the sender %.200q is not one of %q: add it to ids in [gateways.%s.partners.%s]", a.From, c.Realm, d.opt.Gateway, c.Realm)
	}
	from, err := gateway.AgentName(cmp.Or(a.From, c.Realm))
	if err != nil {
		return swarm.Incoming{}, invalid("%v", err)
	}
	in := swarm.Incoming{
		Door: d.name, Digest: slices.Clone(a.Digest[:]), Brief: a.Of == nil, Reply: a.Reply, Note: a.Note, Keep: d.opt.Keep, Asks: d.opt.Asks,
		NewTask: a.Conversation == "" && a.Of == nil && a.Kind != gateway.Answers, Principal: principal(c), Peer: c.Realm, Swarm: a.Swarm, Hops: a.Hops, Trace: a.Trace,
	}
	p := mail.Payload{
		TaskID: taskID(a.Conversation), ID: requestID(exchangeKey(c, a.ID)),
		Sender:  mail.Address{Type: mail.Agent, Name: mail.FormatAddr(from, c.Realm)},
		Subject: cmp.Or(a.Subject, defaultSubject), Body: a.Body, SenderSwarm: c.Realm,
	}
	owner := mail.Owner{Role: mail.RoleSwarm, ID: mail.EncodeID(c.Realm), Swarm: c.Realm}.String()
	in.Wrapper = mail.Interswarm{
		MessageID: a.ID, SourceSwarm: c.Realm, Timestamp: mail.FormatTime(time.Now()), Type: messageType(a.Kind), TaskOwner: owner, TaskContributors: []string{owner},
	}
	if err := d.address(ctx, c, a, &in, &p); err != nil {
		return swarm.Incoming{}, err
	}
	in.Wrapper.TargetSwarm, p.RecipientSwarms = in.Swarm, []string{in.Swarm}
	in.Wrapper.Payload = p
	return in, nil
}

// address finds the recipients of a realm's message, and its task if that exists already.
func (d *Door) address(ctx context.Context, c gateway.Caller, a gateway.Ask, in *swarm.Incoming, p *mail.Payload) error {
	switch {
	case a.Kind == gateway.Resumes:
		raw, err := json.Marshal(wireResults(a))
		p.Sender = mail.Address{Type: mail.System, Name: c.Realm}
		p.Subject, p.Body = mail.SubjectActionCompleteBcast, string(raw)
		p.Recipients = []mail.Address{{Type: mail.Agent, Name: mail.ReservedAll}}
		return err
	case a.Of != nil:
		continueDelivery(a, in, p)
		return nil
	case a.Kind == gateway.Answers:
		return d.answerQuestion(ctx, c, a, in, p)
	}
	for _, name := range recipients(a) {
		agent, err := d.findAgent(c, cmp.Or(in.Swarm, a.Swarm), name)
		if err != nil {
			return err
		}
		in.Swarm = agent.Swarm
		p.Recipients = append(p.Recipients, mail.Address{Type: mail.Agent, Name: mail.FormatAddr(agent.Name, agent.Swarm)})
	}
	return nil
}

// answerQuestion addresses the answer to what an agent has asked in an exchange of the
// realm's.
func (d *Door) answerQuestion(ctx context.Context, c gateway.Caller, a gateway.Ask, in *swarm.Incoming, p *mail.Payload) error {
	snap, err := d.opt.Swarm.Task(ctx, swarm.TaskKey{InstanceKey: in.Principal.Instance(a.Swarm), Task: p.TaskID})
	if err != nil {
		return unknown("no question %q", a.Answers)
	}
	for _, r := range snap.Task.Requests {
		name, realm, err := mail.ParseAddr(r.To)
		if err == nil && realm == c.Realm && r.ID == a.Answers {
			p.ID, p.Sender.Name = r.ID, mail.FormatAddr(name, realm)
			p.Recipients = []mail.Address{{Type: mail.Agent, Name: mail.FormatAddr(r.From, a.Swarm)}}
			return nil
		}
	}
	return unknown("no question %q", a.Answers)
}

// continueDelivery addresses a message about an outbox message: it continues the task
// that sent it, which any user may own.
func continueDelivery(a gateway.Ask, in *swarm.Incoming, p *mail.Payload) {
	sent := a.Of.Wrapper
	in.Back, in.AnyTenant, in.Swarm, in.Trace = true, true, sent.SourceSwarm, cmp.Or(a.Trace, a.Of.Trace)
	in.Wrapper.TaskOwner, in.Wrapper.TaskContributors = sent.TaskOwner, sent.TaskContributors
	p.TaskID, p.ID = sent.Payload.TaskID, cmp.Or(a.Answers, sent.Payload.ID)
	if a.Kind != gateway.Answers {
		p.ID = a.ID
	}
	p.Recipients = []mail.Address{sent.Payload.Sender}
	if a.From == "" {
		p.Sender = sent.Payload.Recipient()
	}
}

// recipients are the names of the agents of a message, "" for the entrypoint.
func recipients(a gateway.Ask) []string {
	if len(a.To) == 0 {
		return []string{""}
	}
	return a.To
}

package uamp

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"skep/abi"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/verb"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/egress"
	"skep/spec/mail"
)

// Carry implements [gateway.Carrier]. What wants an answer is held until the foreign agent
// has given it, on a stream, in the response or by an envelope of its own.
func (g *Gateway) Carry(ctx context.Context, p gateway.Partner, d swarm.Delivery) gateway.Carried {
	isResponse := d.Wrapper.Type == mail.Response
	if d.Ending || gateway.ReportsPause(d) || !isResponse && mail.Reserved(d.Wrapper.Payload.Subject) {
		return gateway.Carried{State: gateway.Taken} // the protocol has no word for it
	}
	a := &attempt{g: g, p: p, d: d, caller: p.Caller()}
	err := a.run(ctx)
	carried := a.outcomeOf(err)
	if a.e.ID == "" && err == nil {
		return carried // nothing was to be sent
	}
	event := gateway.Event{
		Caller: a.caller, Foreign: a.e.ID.String(), Type: string(a.e.Intent), Out: true, Text: a.text, Task: d.Wrapper.Payload.TaskID,
	}
	g.Runtime.Record(event.WithOutcome(false, err))
	return carried
}

// unreached are the reasons of a request that did not leave this host.
var unreached = map[string]bool{egress.ReasonDNS: true, egress.ReasonRefused: true, egress.ReasonConnect: true, egress.ReasonTLS: true}

// outcomeOf returns what an error means for the outbox message.
func outcomeOf(err error) gateway.Carried {
	var f *envelope.Fault
	var broken *abi.Error
	switch {
	case errors.As(err, &f) && (f.Code == envelope.Busy || f.Code == envelope.TooMany):
		return gateway.Carried{State: gateway.Later, Reason: f.Text, Wait: f.RetryAfter}
	case errors.As(err, &f) && f.Code == envelope.Internal:
		return gateway.Carried{State: gateway.Unanswered, Reason: f.Text}
	case errors.As(err, &f):
		return gateway.Carried{State: gateway.Refused, Reason: f.Text}
	case errors.Is(err, gateway.ErrRedirect):
		return gateway.Carried{State: gateway.Refused, Reason: err.Error()}
	case errors.As(err, &broken) && unreached[broken.Reason]:
		return gateway.Carried{State: gateway.Later, Reason: broken.Message}
	case errors.As(err, &broken) && broken.Code == abi.CodeDenied:
		return gateway.Carried{State: gateway.Refused, Reason: broken.Message}
	}
	return gateway.CarriedAfter(err)
}

func (a *attempt) outcomeOf(err error) gateway.Carried { return outcomeOf(err).Since(a.tried, a.sent) }

// attempt carries an outbox message once.
type attempt struct {
	g      *Gateway
	p      gateway.Partner
	d      swarm.Delivery
	caller gateway.Caller
	// via is how the partner is reached.
	via binding
	e   envelope.Envelope
	// text is the signed envelope.
	text   []byte
	thread state.Key
	// open is the envelope in its thread.
	open openEnvelope
	// named is the name that the partner has given to the stream, empty for none.
	named string
	// trouble is why the stream with the answer could not be read last, nil for nothing.
	trouble error
	// tried means that sending was begun, sent that the partner has taken the envelope.
	tried, sent bool
	// begun means that deltas of its stream have come.
	begun bool
	// answered means that the answer is here.
	answered bool
}

func (a *attempt) run(ctx context.Context) error {
	w := a.d.Wrapper
	x, err := a.g.Runtime.Asked(ctx, a.caller, a.d)
	asked := err == nil
	if err != nil && !errors.Is(err, gateway.ErrUnknown) {
		return err
	}
	if w.Type == mail.Response && !asked {
		return gateway.Refuse("the envelope that this answers is kept no more: raise keep in [gateways.uamp]")
	}
	from, to, err := a.ends(x)
	if err != nil {
		return err
	}
	if a.e, err = a.newEnvelope(from, to); err != nil {
		return err
	}
	if a.via, err = a.g.bind(ctx, a.p, to); err != nil {
		return err
	}
	defer a.via.close()
	a.thread = threadKey(a.caller, threadOf(a.e.ID))
	switch {
	case w.Type == mail.Response:
		return a.confirm(ctx, x)
	case a.cancels():
		return a.cancel(ctx)
	case a.unsubscribes():
		return a.unsubscribe(ctx)
	}
	a.about(x, asked)
	if a.e.Intent == envelope.Subscribe {
		return a.subscribe(ctx)
	}
	if a.e.Intent == envelope.Inform || a.e.Intent == envelope.Notify {
		return a.tell(ctx)
	}
	return a.ask(ctx)
}

// threadOf is the name of the thread of an id of ours.
func threadOf(id envelope.ID) string {
	name, _ := threadName(id) // it is a UUID
	return name
}

// ends are the sender of the envelope and the DID of its recipient. The answer to a foreign
// envelope is of the agent that was asked, whoever has written it.
func (a *attempt) ends(x gateway.Exchange) (from address, to string, err error) {
	w := a.d.Wrapper
	if w.Type == mail.Response {
		n, err := readNote(x)
		return address{x.Task.Swarm, x.Agent}, n.From, err
	}
	sender, _, err := mail.ParseAddr(w.Payload.Sender.Name)
	if err != nil {
		return from, "", gateway.Refuse("%v", err)
	}
	to, err = foreignDID(a.p, w.Payload.Recipient().Name)
	return address{w.SourceSwarm, sender}, to, err
}

// newEnvelope is the envelope of an outbox message, without its time and what it is about.
// Its id is the same in each attempt.
func (a *attempt) newEnvelope(sender address, to string) (e envelope.Envelope, err error) {
	w := a.d.Wrapper
	from, ok := a.g.didOf(sender)
	if !ok {
		return e, gateway.Refuse("the agent %q has no DID: its name has characters that no DID can have", sender.agent)
	}
	body := cmp.Or(w.Payload.Body, w.Payload.Subject)
	e = envelope.Envelope{
		ID: newOwnID(a.d.Conversation, to, w.MessageID), From: from, To: []string{to}, Intent: a.intent(), Window: min(a.g.MaxWindow, readWindow),
		Body: envelope.NewBody(mediaTypeOf(body), []byte(body)),
		Ext:  map[string]json.RawMessage{extConversation: quote(a.d.Conversation), extHops: json.RawMessage(strconv.Itoa(a.d.Hops))},
	}
	if w.Payload.Subject != "" && mail.Printable(w.Payload.Subject) && !mail.Reserved(w.Payload.Subject) {
		e.Ext[extSubject] = quote(w.Payload.Subject)
	}
	if e.Intent != envelope.Inform && e.Intent != envelope.Notify {
		e.Stream = ownStream + string(e.ID) // deltas on a socket have nothing else in common with it
	}
	if e.Intent == envelope.Subscribe {
		if err := subscribeContent(&e, w.Payload); err != nil {
			return e, err
		}
	}
	if w.Type == mail.Interrupt {
		e.Ext[extMail] = json.RawMessage(`{"msg_type":"interrupt"}`)
	}
	a.d.Trace.Fields(func(name, value string) { e.Ext[name] = quote(value) })
	return e, nil
}

// quote is a text as JSON.
func quote(text string) json.RawMessage {
	raw, _ := json.Marshal(text) // a text always can
	return raw
}

// mediaTypeOf is the media type of an agent's text.
func mediaTypeOf(body string) string {
	if begin := strings.TrimSpace(body); strings.HasPrefix(begin, "{") || strings.HasPrefix(begin, "[") {
		if json.Valid([]byte(body)) {
			return "application/json"
		}
	}
	return "text/plain"
}

// intent is what an outbox message wants.
func (a *attempt) intent() envelope.Intent {
	written := gateway.VerbOf(a.d.Wrapper.Payload.RoutingInfo)
	switch {
	case a.d.Wrapper.Type == mail.Broadcast && written == verb.UAMPNotify:
		return envelope.Notify
	case a.d.Wrapper.Type == mail.Broadcast:
		return envelope.Inform
	case written == verb.UAMPPropose:
		return envelope.Propose
	case written == verb.UAMPSubscribe:
		return envelope.Subscribe
	}
	return envelope.Ask
}

// asks reports whether the envelope's answer comes on a stream.
func (a *attempt) asks() bool {
	return a.e.Intent == envelope.Ask || a.e.Intent == envelope.Propose || a.e.Intent == envelope.Subscribe
}

// cancels reports whether the message calls off the request that is under way.
func (a *attempt) cancels() bool {
	return a.d.Wrapper.Type == mail.Interrupt && strings.HasPrefix(strings.ToLower(a.d.Wrapper.Payload.Subject), "cancel")
}

// about cites the foreign envelope in whose course an agent asks its caller, whose
// conversation goes on.
func (a *attempt) about(x gateway.Exchange, asked bool) {
	if n, err := readNote(x); asked && err == nil && n.Hash != "" {
		a.e.ReplyTo = envelope.ID(x.Message())
		a.e.Context = []envelope.Reference{{ID: a.e.ReplyTo, Hash: n.Hash}}
		a.e.Ext[extConversation] = quote(x.Conversation)
	}
}

// begin makes the envelope one that is under way, with its time. It is already where an
// attempt before may have sent it: first reports that none has.
func (a *attempt) begin(ctx context.Context) (first bool, err error) {
	err = a.g.changeThread(ctx, a.thread, func(t *thread) error {
		first = t.find(a.e.ID) < 0
		now := time.Now().UTC().Truncate(time.Millisecond)
		if err := t.open(openEnvelope{
			ID: a.e.ID, Intent: a.e.Intent, To: a.e.To[0], Since: now, Until: now.Add(a.p.Timeout + a.p.GiveUp + openLife + a.ttl()), Cites: t.Last, Sent: gateway.RefOf(a.d),
		}); err != nil {
			return err
		}
		a.open = t.Open[t.find(a.e.ID)]
		return nil
	})
	if err != nil {
		return first, err
	}
	a.e.Time, a.tried = a.open.Since, !first
	if cites := a.open.Cites; cites != nil && a.e.ReplyTo == "" {
		a.e.Context = []envelope.Reference{{ID: cites.ID, Hash: cites.Hash}}
	}
	return first, nil
}

// settle is called with what became of an attempt. What is not under way any more leaves
// its thread, and is sent in another attempt with the time that it is then.
func (a *attempt) settle(ctx context.Context, first bool, err error) error {
	state := a.outcomeOf(err).State
	if a.isStale(first, err) {
		err = gateway.ErrBusy // it has not arrived before
	} else if state == gateway.Unanswered || state == gateway.Later && !first {
		return err
	}
	a.remember(ctx, func(t *thread) {
		if err != nil {
			t.drop(a.e.ID)
			return
		}
		t.tell(a.e.ID)
		t.Last = a.last(first)
	})
	return err
}

// isStale reports whether a repeat was refused because its time is too far from now.
func (a *attempt) isStale(first bool, err error) bool {
	var f *envelope.Fault
	return !first && errors.As(err, &f) && f.Code == envelope.Unauthenticated && envelope.CheckTime(a.open.Since, time.Now(), a.g.ClockSkew) != nil
}

// last is the envelope as later ones cite it. Of one that was sent twice it is not known
// which one counts: they differ in their tokens.
func (a *attempt) last(first bool) *lastEnvelope {
	sum, err := a.e.Sum()
	if err != nil || !first {
		return nil
	}
	return &lastEnvelope{a.e.ID, hashPrefix + hex.EncodeToString(sum[:])}
}

// tell sends an envelope without an answer, unless an attempt before has brought it.
func (a *attempt) tell(ctx context.Context) error {
	t, _, err := state.Load[thread](ctx, a.g.threads, a.thread)
	if err != nil || slices.Contains(t.Told, a.e.ID) {
		return err
	}
	first, err := a.begin(ctx)
	if err != nil {
		return err
	}
	if err = a.prepare(ctx, first); err == nil {
		_, err = a.post(ctx)
	}
	return a.settle(ctx, first, err)
}

// prepare seals the envelope. One that has not been sent is held against the manifest of its
// recipient.
func (a *attempt) prepare(ctx context.Context, first bool) error {
	if err := a.seal(); err != nil || !first {
		return err
	}
	return a.g.manifests.check(ctx, a.p, a.e, len(a.text))
}

// send sends the envelope. What the partner has signed to refuse it for good is its answer.
func (a *attempt) send(ctx context.Context, first bool) (posted, error) {
	if err := a.prepare(ctx, first); err != nil {
		return posted{}, err
	}
	got, err := a.post(ctx)
	no := refusalIn(err)
	switch {
	case no == nil || a.isStale(first, err):
		return got, err
	case !first && a.asks() && refusesRepeat(no.fault):
		a.sent, a.trouble = true, repeatRefused(no.fault)
		return posted{}, nil // the envelope before has the stream
	}
	return posted{answer: &no.by}, nil
}

// refusalIn is what the partner has signed to refuse an envelope for good, nil for none.
func refusalIn(err error) *signedRefusal {
	var no *signedRefusal
	if errors.As(err, &no) && outcomeOf(err).State == gateway.Refused {
		return no
	}
	return nil
}

// endedBefore reports whether a partner has signed that it withdraws nothing, as what is to be
// withdrawn has ended there. Where it lets our agent in no more, that goes on.
func endedBefore(err error) bool {
	no := refusalIn(err)
	return no != nil && no.fault.Code != envelope.Unauthenticated && no.fault.Code != envelope.Unauthorized
}

// seal signs the envelope, with a capability token.
func (a *attempt) seal() (err error) {
	a.e.CapToken, err = a.g.capToken(a.p, a.e)
	if err == nil {
		a.text, err = a.g.sign(a.e)
	}
	return err
}

// cancel withdraws the newest envelope to the agent that waits for an answer (U-085). One
// that has been answered meanwhile stays.
func (a *attempt) cancel(ctx context.Context) error {
	t, _, err := state.Load[thread](ctx, a.g.threads, a.thread)
	if err != nil {
		return err
	}
	ask, ok := t.newestAsk()
	if !ok {
		a.e.ID = ""
		return nil
	}
	err = a.withdraw(ctx, ask.ID)
	if ask.Intent != envelope.Subscribe || err != nil && !endedBefore(err) {
		return err
	}
	sub := subscription{ID: ask.ID, To: ask.To, Sent: ask.Sent}
	return a.g.endSubscription(ctx, a.caller, sub, sub.cancelled())
}

// withdraw sends the envelope as the cancel of another.
func (a *attempt) withdraw(ctx context.Context, ask envelope.ID) error {
	a.e.Intent, a.e.ReplyTo, a.e.Stream, a.e.Context, a.e.Time = envelope.Cancel, ask, "", nil, time.Now()
	delete(a.e.Ext, extMail)
	if err := a.seal(); err != nil {
		return err
	}
	_, err := a.post(ctx)
	return err
}

package capability

import (
	"context"
	"encoding/json"
	"slices"

	"skep/abi"
	"skep/host/internal/sandbox"
	"skep/host/internal/swarm"
)

// asked marks the intent of a call that a person answers.
const asked = -2

// asks returns what a call asks a person, nil for a call that the host does.
func (o *ops) asks(c call, req []byte) *swarm.Ask {
	if o.turn == nil || c.op != abi.OpMail && c.op != abi.OpAction {
		return nil
	}
	a, fault := readAsk(c, req)
	switch {
	case fault != nil:
		return nil
	case o.action != nil:
		if c.op == abi.OpMail || !slices.Contains(o.action.Calls, a.Name) || !o.turn.Personal(a.Name) {
			return nil
		}
	case !o.turn.Asks(c.op, a.Name):
		return nil
	}
	a.ID = o.turn.AskID(c.path)
	return a
}

// readAsk reads the call of a tool or an action. With a fault it has neither
// name nor arguments.
func readAsk(c call, req []byte) (*swarm.Ask, *abi.Error) {
	a := &swarm.Ask{Call: c.path, Op: c.op, Args: json.RawMessage("{}")}
	var ask abi.ActionRequest
	var fault *abi.Error
	if c.op == abi.OpMail {
		var mail abi.MailRequest
		fault = decode(c.op, req, &mail)
		ask = abi.ActionRequest{Name: mail.Tool, Args: mail.Args}
	} else {
		fault = decode(c.op, req, &ask)
	}
	if fault != nil {
		return a, fault
	}
	if a.Name = ask.Name; len(ask.Args) > 0 {
		a.Args = ask.Args
	}
	return a, nil
}

// put begins a call that a person answers.
func (o *ops) put(ctx context.Context, c call, a *swarm.Ask, req []byte) *reply {
	r := &reply{o: o, call: c, off: ctx.Done(), ask: a}
	if fault := o.misfit(c, a); fault != nil {
		o.j.told(c, 0, nil, fault)
		o.refusedAction(c, req, fault)
		return o.done(c, nil, fault)
	}
	size := len(a.Args)
	for _, other := range o.j.asking {
		size += len(other.ask.Args)
	}
	if size > swarm.MaxAsked {
		fault := abi.Errorf(abi.CodeLimit, c.op, "asked", "the calls of a turn that people answer may have %d bytes of arguments", swarm.MaxAsked)
		o.j.told(c, 0, nil, fault)
		o.refusedAction(c, req, fault)
		return o.done(c, nil, fault)
	}
	e := c.asked(swarm.EntryIntent)
	e.Index = asked
	o.j.add(e)
	o.j.asking = append(o.j.asking, r)
	if fault := o.turn.Unanswered(c.op); fault != nil {
		o.j.unanswered(c, fault)
	}
	return r
}

// misfit says what is wrong with the arguments of an action that a person is to
// answer.
func (o *ops) misfit(c call, a *swarm.Ask) *abi.Error {
	check := o.forms[a.Name]
	if coded := o.actions[a.Name]; coded != nil {
		check = coded.Check
	}
	if c.op != abi.OpAction || check == nil {
		return nil
	}
	if err := check(a.Args); err != nil {
		return abi.Errorf(abi.CodeInvalid, abi.OpAction, "args", "the arguments of action %q: %v", a.Name, err)
	}
	return nil
}

// unanswered records that a call will not be answered. The turn learns of it where
// it would learn of an answer, as when it is run again.
func (j *journal) unanswered(c call, fault *abi.Error) {
	e := c.entry(swarm.EntryAnswer)
	e.Err, e.Time = fault, j.clock.Now()
	j.add(e)
	if j.past.answers == nil {
		j.past.answers = map[string]*swarm.Entry{}
	}
	j.past.entries = append(j.past.entries, e)
}

// refusedAction tells the turn of a call of an action that did not begin.
func (o *ops) refusedAction(c call, req []byte, fault *abi.Error) {
	if c.op != abi.OpAction || o.turn == nil || o.action != nil || fault == nil {
		return
	}
	a, _ := readAsk(c, req) // one that cannot be read has no name
	a.ID = o.turn.AskID(c.path)
	o.turn.RefusedAction(*a, fault)
}

// putAgain takes up such a call where it is recorded.
func (o *ops) putAgain(ctx context.Context, c call, req []byte) *reply {
	a, _ := readAsk(c, req) // it is recorded, so it was good
	r := &reply{o: o, call: c, off: ctx.Done(), ask: a}
	if o.turn != nil {
		r.ask.ID = o.turn.AskID(c.path)
	}
	o.j.asking = append(o.j.asking, r)
	return r
}

// pending reports whether the reply must come from a person.
func (r *reply) pending() bool {
	r.look()
	return r.ask != nil && !r.known && r.late == nil
}

// suspend stops a turn that waits for nothing but people. What is in the air
// comes down first.
func (o *ops) suspend(ctx context.Context, c call) *abi.Error {
	if o.j.past.offline {
		return o.j.over(c)
	}
	for _, r := range o.j.aloft {
		if fault := o.ground(ctx, r); fault != nil {
			return fault
		}
	}
	o.j.suspended = true
	o.j.end("suspended", "", "the turn waits for a person")
	return o.j.off(c.op)
}

// ground waits until an effect is over and its answer is durable.
func (o *ops) ground(ctx context.Context, r *reply) *abi.Error {
	if r.known || r.gone {
		return nil
	}
	r.flight.whole()
	for !r.flight.landed() {
		select {
		case <-o.j.bell():
		case <-ctx.Done():
			return sandbox.CalledOff(ctx, r.call.op.String())
		}
	}
	return r.settle()
}

// asks are the calls that a suspended turn waits for.
func (j *journal) asks() (out []swarm.Ask) {
	for _, r := range j.asking {
		if r.pending() {
			out = append(out, *r.ask)
		}
	}
	return out
}

package capability

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"skep/abi"
	"skep/host/internal/sandbox"
	"skep/host/internal/swarm"
)

// ran is what the record has of an action: with its intent what it runs on, and
// with its answer how it ended and what it took.
type ran struct {
	Module string          `json:"module,omitempty"`
	Limits sandbox.Limits  `json:"limits,omitzero"`
	Params json.RawMessage `json:"params,omitempty"`

	// Fleeting says that it need not do again what it did.
	Fleeting bool `json:"fleeting,omitempty"`

	Exit      string `json:"exit,omitempty"`
	Fuel      uint64 `json:"fuel,omitempty"`
	HostCalls int64  `json:"host_calls,omitempty"`
}

// encode writes it. All of it encodes: params were read from a text.
func (r ran) encode() json.RawMessage {
	raw, _ := json.Marshal(r)
	return raw
}

// taken is what the actions of a turn have taken.
type taken struct {
	fuel  uint64
	cpu   time.Duration
	calls int64
}

// add counts it as the turn's own.
func (t *taken) add(res sandbox.Result) sandbox.Result {
	res.Fuel, res.CPU, res.HostCalls = res.Fuel+t.fuel, res.CPU+t.cpu, res.HostCalls+t.calls
	return res
}

// derive makes the seed of what runs inside: nobody can tell one from the other.
func derive(seed [32]byte, label string) (out [32]byte) {
	mac := hmac.New(sha256.New, seed[:])
	mac.Write([]byte(label))
	mac.Sum(out[:0])
	return out
}

// runs makes the handler of an action that runs on what r says.
func (o *ops) runs(a *Action, r ran) handler {
	h := handler{ran: r.encode()}
	h.nested = func(in *ops, ctx context.Context, req []byte) ([]byte, *abi.Error) {
		actor, fault := in.actor(ctx, a, r.Module)
		if fault != nil {
			return nil, fault
		}
		return in.within(a).run(ctx, actor, r, req)
	}
	return h
}

// runsAgain makes the handler of an action that is recorded. It runs on what it
// ran on, with what is granted today.
func (o *ops) runsAgain(e *swarm.Entry, req []byte) (handler, *abi.Error) {
	var r ran
	if err := json.Unmarshal(e.Ran, &r); err != nil {
		return handler{}, o.j.diverged(e.Op, "the record of call %s cannot be read: %v", e.Call, err)
	}
	ask, _ := readAsk(call{op: e.Op}, req) // it is recorded, so it was good
	a := o.actions[ask.Name]
	if a == nil || a.Module == nil {
		a = &Action{Name: ask.Name}
	}
	return o.runs(a, r), nil
}

// actor finds the module that an action runs on.
func (o *ops) actor(ctx context.Context, a *Action, digest string) (Actor, *abi.Error) {
	m := a.Module
	if m == nil || m.Digest() != digest {
		if o.modules == nil {
			return nil, o.j.diverged(abi.OpAction, "the action %q ran on the module %s, which this host does not have any more", a.Name, digest)
		}
		var err error
		if m, err = o.modules.Module(ctx, digest); err != nil {
			return nil, o.j.diverged(abi.OpAction, "the action %q ran on the module %s, which this host cannot run any more: %v", a.Name, digest, err)
		}
	}
	actor, ok := m.(Actor)
	if !ok {
		return nil, abi.Errorf(abi.CodeUnsupported, abi.OpAction, "module", "the module of action %q cannot be run", a.Name)
	}
	return actor, nil
}

// run runs an action, whose ops these are.
func (o *ops) run(ctx context.Context, actor Actor, r ran, req []byte) ([]byte, *abi.Error) {
	ask, _ := readAsk(call{op: abi.OpAction}, req)
	o.fleeting = o.fleeting || !repeats(actor)
	t := sandbox.Turn{
		Input: actionInput(ask, r.Params), Seed: o.seed, Clock: turnClock{o.clock, o.j}, Ops: o,
		CPU: o.cpu, Limits: r.Limits, Cancelled: ctx.Done(),
	}
	if o.turn != nil {
		t.Tenant = o.turn.Key().Tenant
	}
	life, limits := o.j.life, &t.Limits
	if o.decided || o.j.past.offline {
		limits.CPU = time.Hour // fuel is what repeats
	} else if o.action.Timeout > 0 {
		var cancel context.CancelFunc
		life, cancel = context.WithTimeoutCause(life, o.action.Timeout, fmt.Errorf("the action took longer than %v", o.action.Timeout))
		defer cancel()
	}
	leave := func(bool) {}
	if o.turn != nil {
		leave = o.turn.Enter(o.action.Name)
	}
	before := *o.taken
	res := actor.Action(life, t)
	leave(res.Exit != nil)
	o.taken.fuel, o.taken.cpu, o.taken.calls = o.taken.fuel+res.Fuel, o.taken.cpu+res.CPU, o.taken.calls+res.HostCalls
	*o.ended = ran{Fleeting: o.fleeting, Exit: exitOf(res), Fuel: o.taken.fuel - before.fuel, HostCalls: o.taken.calls - before.calls}
	if res.Exit != nil {
		return nil, o.failure(res.Exit)
	}
	if len(bytes.TrimSpace(res.Output)) == 0 {
		return []byte("null"), nil
	}
	return bytes.Clone(res.Output), nil
}

// actionInput is what an action reads.
func actionInput(ask *swarm.Ask, params json.RawMessage) []byte {
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	in, _ := plainJSON(abi.OpAction, struct {
		Name   string          `json:"name"`
		Args   json.RawMessage `json:"args"`
		Params json.RawMessage `json:"params"`
	}{ask.Name, ask.Args, params}) // both are JSON
	return in
}

func exitOf(res sandbox.Result) string {
	if res.Exit != nil {
		return string(res.Exit.Kind)
	}
	return exitOK
}

// failure is what the caller of an action is told that has failed.
func (o *ops) failure(exit *sandbox.Exit) *abi.Error {
	code, text := abi.CodeUpstream, exit.Message
	switch exit.Kind {
	case sandbox.ExitDeadline:
		return abi.Errorf(abi.CodeDeadline, abi.OpAction, "timeout", "%sit took longer than the %v of %s timeout",
			swarm.ActionFailed, o.action.Timeout, o.tableName())
	case sandbox.ExitCancelled:
		code = abi.CodeCancelled
	case sandbox.ExitHost, sandbox.ExitProcess:
		code = abi.CodeInternal
	}
	if exit.Limit != "" {
		code, text = abi.CodeLimit, fmt.Sprintf("%s; %s %s allows more", text, o.tableName(), exit.Limit)
	}
	return abi.Errorf(code, abi.OpAction, string(exit.Kind), "%s%s", swarm.ActionFailed, text)
}

// nest runs an action, for the first time or again.
func (o *ops) nest(ctx context.Context, c call, h handler, req []byte) *reply {
	was := o.j.past.outcomes[c.path]
	if was.answered && !was.repeats() || o.j.past.offline && (len(h.ran) == 0 || o.modules == nil) {
		return o.passOver(ctx, c, req, was)
	}
	in := o.inner(c)
	in.decided, in.ended = was.answered, &ran{}
	body, fault := h.nested(in, ctx, req)
	if e, ok := o.j.answer(c.path); ok {
		if !bytes.Equal(e.Answer, body) || (e.Err == nil) != (fault == nil) {
			return o.done(c, nil, o.j.diverged(c.op,
				"the action of call %s did not repeat itself: it answers %.80q, recorded %.80q", c.path, body, e.Answer))
		}
		o.act(c, req, e.Answer, e.Err)
		return o.done(c, e.Answer, e.Err)
	}
	if e := o.j.next(); e != nil {
		return o.done(c, nil, o.j.diverge(c, swarm.EntryAnswer, e))
	}
	e := c.entry(swarm.EntryAnswer)
	e.Answer, e.Err = body, fault
	if len(h.ran) > 0 {
		e.Ran = in.ended.encode()
	}
	o.j.add(e)
	o.act(c, req, body, fault)
	return o.done(c, body, fault)
}

// passOver answers for an action that is not run again: how it ended does not
// repeat, or the record is all there is.
func (o *ops) passOver(ctx context.Context, c call, req []byte, was outcome) *reply {
	o.j.skip(c.path, func(e *swarm.Entry) { o.stageAgain(ctx, e) })
	if off := o.j.off(c.op); off != nil {
		return o.done(c, nil, off)
	}
	e, ok := o.j.answer(c.path)
	if !ok {
		return o.done(c, nil, o.j.over(c))
	}
	if was.ran != nil && o.taken != nil {
		o.taken.fuel, o.taken.calls = o.taken.fuel+was.ran.Fuel, o.taken.calls+was.ran.HostCalls
	}
	o.act(c, req, e.Answer, e.Err)
	return o.done(c, e.Answer, e.Err)
}

// staging is what an action that need not do it again has changed in its turn, kept
// with the record of the call, so that it can be changed again without the action.
type staging struct {
	Action  string          `json:"action"`
	Request json.RawMessage `json:"request"`
}

// kept is what the record keeps of a call that ended well, nil for nothing. Spans
// are not marked again: they would not have the times of the first ones.
func (o *ops) kept(c call, h handler, req []byte) json.RawMessage {
	if !o.fleeting || !h.again || slices.Contains([]abi.Op{abi.OpRandom, abi.OpLog, abi.OpSpan}, c.op) {
		return nil
	}
	raw, _ := json.Marshal(staging{o.action.Name, req}) // the request was read as JSON
	return raw
}

// stageAgain changes the turn as an action did that is passed over. What one that
// failed had staged is left out.
func (o *ops) stageAgain(ctx context.Context, e *swarm.Entry) {
	var s staging
	if e.Kind != swarm.EntryCall || len(e.Ran) == 0 || o.turn == nil {
		return
	}
	if err := json.Unmarshal(e.Ran, &s); err != nil {
		o.j.diverged(e.Op, "the record of call %s cannot be read: %v", e.Call, err)
		return
	}
	leave := o.turn.Enter(s.Action)
	if _, fault := o.repeat(ctx, e, s.Request); fault != nil && o.j.off(e.Op) == nil {
		o.j.diverged(e.Op, "call %s %s cannot be repeated: %v", e.Call, e.Op, fault)
	}
	leave(o.j.failed(e.Call))
}

// failed reports whether an action has failed that a call was made in.
func (j *journal) failed(path string) bool {
	for at := strings.LastIndexByte(path, '.'); at >= 0; at = strings.LastIndexByte(path, '.') {
		path = path[:at]
		if r := j.past.outcomes[path].ran; r != nil && r.Exit != exitOK {
			return true
		}
	}
	return false
}

// repeats reports whether an action that is run again ends as it did.
func (o outcome) repeats() bool {
	return o.ran == nil || !o.ran.Fleeting && slices.Contains(repeating(), o.ran.Exit)
}

// repeating are the ends that come again when the same is run again.
func repeating() []string {
	return []string{
		exitOK, "output", string(sandbox.ExitFailed), string(sandbox.ExitTrap), string(sandbox.ExitAbort), string(sandbox.ExitProc),
		string(sandbox.ExitFuel), string(sandbox.ExitStack), string(sandbox.ExitMemory), string(sandbox.ExitOutput),
	}
}

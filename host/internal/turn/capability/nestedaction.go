package capability

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
)

// actionRecord is the record of an action: with the intent, what it runs on; with the
// answer, how it ended and its usage.
type actionRecord struct {
	Module string          `json:"module,omitempty"`
	Limits turn.Limits     `json:"limits,omitzero"`
	Params json.RawMessage `json:"params,omitempty"`

	// NonRepeating is set if a re-run need not repeat the action's calls. Its name in JSON
	// is older and stays: stored records have it.
	NonRepeating bool `json:"fleeting,omitempty"`

	Exit      string `json:"exit,omitempty"`
	Fuel      uint64 `json:"fuel,omitempty"`
	HostCalls int64  `json:"host_calls,omitempty"`
}

// encode encodes the record. It cannot fail: params are valid JSON.
func (r actionRecord) encode() json.RawMessage {
	raw, _ := json.Marshal(r)
	return raw
}

// actionUsage is the usage of a turn's actions.
type actionUsage struct {
	fuel  uint64
	cpu   time.Duration
	calls int64
}

// add adds the usage to the turn's own.
func (t *actionUsage) add(res turn.Result) turn.Result {
	res.Fuel, res.CPU, res.HostCalls = res.Fuel+t.fuel, res.CPU+t.cpu, res.HostCalls+t.calls
	return res
}

// deriveSeed derives the seed of an action, which does not reveal the turn's seed.
func deriveSeed(seed [32]byte, label string) (out [32]byte) {
	mac := hmac.New(sha256.New, seed[:])
	mac.Write([]byte(label))
	mac.Sum(out[:0])
	return out
}

// actionRunner returns the handler of an action that runs on module, limits and params of
// r.
func (o *ops) actionRunner(a *Action, r actionRecord) handler {
	h := handler{record: r.encode()}
	h.nested = func(in *ops, ctx context.Context, req []byte) ([]byte, *abi.Error) {
		actor, fault := in.findActionModule(a, r.Module)
		if fault != nil {
			return nil, fault
		}
		return in.forAction(a).runAction(ctx, actor, r, req)
	}
	return h
}

// recordedRunner returns the handler of a recorded action. It runs on the recorded module
// with the current grants.
func (o *ops) recordedRunner(e *swarm.Entry, req []byte) (handler, *abi.Error) {
	var r actionRecord
	if err := json.Unmarshal(e.Ran, &r); err != nil {
		return handler{}, o.j.diverged(e.Op, "the record of call %s cannot be read: %v", e.Call, err)
	}
	ask, _ := readToolCall(call{op: e.Op}, req) // it is recorded, so it is valid
	a := o.actions[ask.Name]
	if a == nil || a.Module == nil {
		a = &Action{Name: ask.Name}
	}
	return o.actionRunner(a, r), nil
}

// findActionModule returns the module that an action runs on. It stays loaded until the turn
// ends.
func (o *ops) findActionModule(a *Action, digest string) (ActionModule, *abi.Error) {
	m := a.Module
	if m == nil || m.Digest() != digest {
		if o.modules == nil {
			return nil, o.j.diverged(abi.OpAction, "the action %q ran on the module %s, which this host does not have any more", a.Name, digest)
		}
		var err error
		m, err = loadRecorded(o.j.ctx, o.turn, o.modules, digest)
		if errors.Is(err, errModuleUnread) {
			o.j.fail("host", "", fmt.Sprintf("the module %s of the action %q: %v", digest, a.Name, err))
			return nil, o.j.stoppedError(abi.OpAction)
		}
		if err != nil {
			return nil, o.j.diverged(abi.OpAction, "the action %q ran on the module %s, which this host cannot run any more: %v", a.Name, digest, err)
		}
	}
	actor, ok := m.(ActionModule)
	if !ok {
		return nil, abi.Errorf(abi.CodeUnsupported, abi.OpAction, "module", "the module of action %q cannot be run", a.Name)
	}
	return actor, nil
}

// runAction runs an action; o are its ops.
func (o *ops) runAction(ctx context.Context, actor ActionModule, r actionRecord, req []byte) ([]byte, *abi.Error) {
	ask, _ := readToolCall(call{op: abi.OpAction}, req)
	o.nonRepeating = o.nonRepeating || !isRepeatable(actor)
	t := turn.Turn{
		Input: actionInput(ask, r.Params), Seed: o.seed, Clock: turnClock{o.clock, o.j}, Ops: o,
		CPU: o.cpu, Limits: r.Limits, Cancelled: ctx.Done(),
	}
	if o.turn != nil {
		t.Tenant = o.turn.Key().Tenant
	}
	runCtx, limits := o.j.ctx, &t.Limits
	if o.endRecorded || o.j.prior.offline {
		limits.CPU = time.Hour // fuel is the limit that repeats
	} else if o.action.Timeout > 0 {
		var cancel context.CancelFunc
		runCtx, cancel = context.WithTimeoutCause(runCtx, o.action.Timeout, fmt.Errorf("the action took longer than %v", o.action.Timeout))
		defer cancel()
	}
	leave := func(bool) {}
	if o.turn != nil {
		leave = o.turn.EnterAction(o.action.Name)
	}
	before := *o.actionUsage
	res := actor.Action(runCtx, t)
	leave(res.Exit != nil)
	o.actionUsage.fuel, o.actionUsage.cpu, o.actionUsage.calls = o.actionUsage.fuel+res.Fuel, o.actionUsage.cpu+res.CPU, o.actionUsage.calls+res.HostCalls
	*o.end = actionRecord{NonRepeating: o.nonRepeating, Exit: exitOf(res), Fuel: o.actionUsage.fuel - before.fuel, HostCalls: o.actionUsage.calls - before.calls}
	if res.Exit != nil {
		return nil, o.actionError(res.Exit)
	}
	if len(bytes.TrimSpace(res.Output)) == 0 {
		return []byte("null"), nil
	}
	return bytes.Clone(res.Output), nil
}

// actionInput is the input of an action.
func actionInput(ask *swarm.BreakpointCall, params json.RawMessage) []byte {
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	in, _ := encodeUnescaped(abi.OpAction, struct {
		Name   string          `json:"name"`
		Args   json.RawMessage `json:"args"`
		Params json.RawMessage `json:"params"`
	}{ask.Name, ask.Args, params}) // both are valid JSON
	return in
}

func exitOf(res turn.Result) string {
	if res.Exit != nil {
		return string(res.Exit.Kind)
	}
	return exitOK
}

// actionError is the error that the caller of a failed action gets.
func (o *ops) actionError(exit *turn.Exit) *abi.Error {
	code, text := abi.CodeUpstream, exit.Message
	switch exit.Kind {
	case turn.ExitDeadline:
		return abi.Errorf(abi.CodeDeadline, abi.OpAction, "timeout", "%sit took longer than the %v of %s timeout",
			swarm.ActionFailedPrefix, o.action.Timeout, o.tableName())
	case turn.ExitCancelled:
		code = abi.CodeCancelled
	case turn.ExitHost, turn.ExitProcess:
		code = abi.CodeInternal
	}
	if exit.Limit != "" {
		code, text = abi.CodeLimit, fmt.Sprintf("%s; %s %s allows more", text, o.tableName(), exit.Limit)
	}
	return abi.Errorf(code, abi.OpAction, string(exit.Kind), "%s%s", swarm.ActionFailedPrefix, text)
}

// runNested runs an action, for the first time or again.
func (o *ops) runNested(ctx context.Context, c call, h handler, req []byte) *reply {
	was := o.j.prior.effects[c.path]
	if was.answered && !was.isRepeatable() || o.j.prior.offline && (len(h.record) == 0 || o.modules == nil) {
		return o.skipAction(ctx, c, req, was)
	}
	in := o.nested(c)
	in.endRecorded, in.end = was.answered, &actionRecord{}
	body, fault := h.nested(in, ctx, req)
	if e, ok := o.j.recordedAnswer(c.path); ok {
		if !bytes.Equal(e.Answer, body) || (e.Err == nil) != (fault == nil) {
			return o.doneReply(c, nil, o.j.diverged(c.op,
				"the action of call %s did not repeat itself: it answers %.80q, recorded %.80q", c.path, body, e.Answer))
		}
		o.stageAction(c, req, e.Answer, e.Err)
		return o.doneReply(c, e.Answer, e.Err)
	}
	if e := o.j.nextEntry(); e != nil {
		return o.doneReply(c, nil, o.j.diverge(c, swarm.EntryAnswer, e))
	}
	e := c.entry(swarm.EntryAnswer)
	e.Answer, e.Err = body, fault
	if len(h.record) > 0 {
		e.Ran = in.end.encode()
	}
	o.j.add(e)
	o.stageAction(c, req, body, fault)
	return o.doneReply(c, body, fault)
}

// skipAction answers for an action that is not run again: its end does not repeat, or
// there is only the record.
func (o *ops) skipAction(ctx context.Context, c call, req []byte, was effectRecord) *reply {
	o.j.skipNested(c.path, func(e *swarm.Entry) { o.restage(ctx, e) })
	if fault := o.j.stoppedError(c.op); fault != nil {
		return o.doneReply(c, nil, fault)
	}
	e, ok := o.j.recordedAnswer(c.path)
	if !ok {
		return o.doneReply(c, nil, o.j.recordEnded(c))
	}
	if was.ran != nil && o.actionUsage != nil {
		o.actionUsage.fuel, o.actionUsage.calls = o.actionUsage.fuel+was.ran.Fuel, o.actionUsage.calls+was.ran.HostCalls
	}
	o.stageAction(c, req, e.Answer, e.Err)
	return o.doneReply(c, e.Answer, e.Err)
}

// stagedCall is a call of a non-repeating action. It is kept with the record, so that its
// effect can be staged without a run of the action.
type stagedCall struct {
	Action  string          `json:"action"`
	Request json.RawMessage `json:"request"`
}

// stagingRecord returns what the record keeps of a successful call, nil for nothing. Spans
// are left out: a second marking would get other times.
func (o *ops) stagingRecord(c call, h handler, req []byte) json.RawMessage {
	if !o.nonRepeating || !h.restaged || slices.Contains([]abi.Op{abi.OpRandom, abi.OpLog, abi.OpSpan}, c.op) {
		return nil
	}
	raw, _ := json.Marshal(stagedCall{o.action.Name, req}) // the request was decoded as JSON
	return raw
}

// restage stages a call of a skipped action again. Calls within a failed action are left
// out.
func (o *ops) restage(ctx context.Context, e *swarm.Entry) {
	var s stagedCall
	if e.Kind != swarm.EntryCall || len(e.Ran) == 0 || o.turn == nil {
		return
	}
	if err := json.Unmarshal(e.Ran, &s); err != nil {
		o.j.diverged(e.Op, "the record of call %s cannot be read: %v", e.Call, err)
		return
	}
	leave := o.turn.EnterAction(s.Action)
	if _, fault := o.repeatCall(ctx, e, s.Request); fault != nil && o.j.stoppedError(e.Op) == nil {
		o.j.diverged(e.Op, "call %s %s cannot be repeated: %v", e.Call, e.Op, fault)
	}
	leave(o.j.insideFailedAction(e.Call))
}

// insideFailedAction reports whether a call was made within an action that failed.
func (j *journal) insideFailedAction(path string) bool {
	for at := strings.LastIndexByte(path, '.'); at >= 0; at = strings.LastIndexByte(path, '.') {
		path = path[:at]
		if r := j.prior.effects[path].ran; r != nil && r.Exit != exitOK {
			return true
		}
	}
	return false
}

// isRepeatable reports whether a re-run of the action ends the same way.
func (o effectRecord) isRepeatable() bool {
	return o.ran == nil || !o.ran.NonRepeating && slices.Contains(repeatableExits(), o.ran.Exit)
}

// repeatableExits are the exits that repeat with equal input.
func repeatableExits() []string {
	return []string{
		exitOK, "output", string(turn.ExitFailed), string(turn.ExitTrap), string(turn.ExitAbort), string(turn.ExitProc),
		string(turn.ExitFuel), string(turn.ExitStack), string(turn.ExitMemory), string(turn.ExitOutput),
	}
}

package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
	"skep/spec/mail"
)

// plan is the body of a message: what its reader does. Mark names it uniquely, Gen names
// the data of a tenant between two erasures.
type plan struct {
	Mark  string `json:"mark"`
	Gen   string `json:"gen"`
	Steps []step `json:"steps,omitempty"`
}

// step is one thing that an agent does.
type step struct {
	// Do is ask, timer, cas, put, fetch, chat, human, sleep or fail.
	Do   string `json:"do"`
	Mark string `json:"mark"`
	To   string `json:"to,omitempty"`
	// MS is the time of a timer or a sleep.
	MS   int64 `json:"ms,omitempty"`
	Plan *plan `json:"plan,omitempty"`
}

// agentState is what an agent keeps from turn to turn: how many answers it waits for.
type agentState struct {
	Open int `json:"open"`
}

// module is the code of all agents.
type module struct{ world *world }

func (m module) Digest() string { return "simulated" }

// Turn handles one message.
func (m module) Turn(ctx context.Context, t turn.Turn) turn.Result {
	v := &visit{world: m.world, ctx: ctx, turn: t}
	if err := json.Unmarshal(t.Input, &v.in); err != nil {
		return turn.Result{Exit: turn.HostExit(err)}
	}
	key := swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: t.Tenant, Instance: v.in.Agent.Instance}, Task: v.in.Task.ID}
	v.name = fmt.Sprintf("%s/%s turn %d", short(key), v.in.Agent.Address, v.in.Turn)
	if err := t.CPU.Acquire(ctx); err != nil {
		return turn.Result{Exit: turn.ContextExit(ctx)}
	}
	defer t.CPU.Release()
	v.handle()
	switch {
	case ctx.Err() != nil:
		return turn.Result{Exit: turn.ContextExit(ctx)}
	case v.failed:
		return turn.Result{Exit: turn.AbortExit(abi.CodeInternal, "the plan wants it")}
	}
	state, _ := json.Marshal(v.state) // always encodes
	out, _ := json.Marshal(abi.TurnResult{State: state})
	return turn.Result{Output: out, Fuel: 100}
}

// visit is one run of one turn.
type visit struct {
	world  *world
	ctx    context.Context
	turn   turn.Turn
	in     abi.TurnInput
	name   string
	state  agentState
	sent   int
	failed bool
}

func (v *visit) handle() {
	if v.world.living().park("turn "+v.name, stepGate).fault == hostDied {
		return
	}
	m, err := mail.ParseMessage(v.in.Message)
	if err != nil {
		panic(err)
	}
	_ = json.Unmarshal(v.in.State, &v.state) // null is the first
	p := m.Payload
	v.world.checkTurn(v, p)
	var todo plan
	isPlan := json.Unmarshal([]byte(p.Body), &todo) == nil && todo.Mark != ""
	switch {
	case p.Sender.Type == mail.System && p.Subject == mail.SubjectTimer:
		v.state.Open--
		v.do(todo.Steps)
	case p.Sender.Type == mail.System:
		if p.Subject == mail.SubjectAgentError || p.Subject == mail.SubjectRouterError {
			v.state.Open--
		}
	case m.Type == mail.Response:
		v.state.Open--
	case isPlan:
		v.do(todo.Steps)
	}
	switch {
	case v.failed || v.ctx.Err() != nil:
	case v.in.Agent.CanCompleteTasks:
		v.finish()
	case m.Type == mail.Request && p.Sender.Type == mail.Agent:
		v.mail(mail.ToolSendResponse, map[string]any{"target": p.Sender.Name, "subject": "re", "body": "done " + todo.Mark + " " + todo.Gen})
	}
}

// finish completes the task, or waits for what is open.
func (v *visit) finish() {
	if v.state.Open > 0 && v.mail(mail.ToolAwaitMessage, map[string]any{}) == nil {
		return
	}
	v.state.Open = 0
	v.mail(mail.ToolTaskComplete, map[string]any{"finish_message": "finished"})
}

func (v *visit) do(steps []step) {
	for _, s := range steps {
		if v.ctx.Err() != nil || v.failed {
			return
		}
		v.step(s)
	}
}

func (v *visit) step(s step) {
	switch s.Do {
	case "ask":
		fault := v.mail(mail.ToolSendRequest, map[string]any{"target": s.To, "subject": "do", "body": s.Plan.text()})
		if fault == nil {
			v.state.Open++
			v.sent++
		}
		v.world.checkSend(v, s, fault)
	case "timer":
		_, fault := v.call(abi.OpTimerSet, map[string]any{"after": s.MS, "body": s.Plan.text()})
		if fault == nil {
			v.state.Open++
			v.sent++
		}
		v.world.checkSend(v, s, fault)
	case "cas":
		v.increment(s)
	case "put":
		v.call(abi.OpKVPut, map[string]any{"key": "p", "value": s.Mark})
	case "fetch":
		v.call(abi.OpHTTPFetch, map[string]any{"method": "POST", "url": "http://web.test/" + s.Mark})
	case "chat":
		v.call(abi.OpLLMChat, map[string]any{"model": "sim", "messages": []any{map[string]any{"role": "user", "content": v.turn.Tenant + " " + s.Mark}}})
	case "human":
		v.call(abi.OpAction, map[string]any{"name": "confirm", "args": map[string]any{"mark": s.Mark}})
	case "sleep":
		v.turn.CPU.Release()
		_ = v.turn.Clock.Sleep(v.ctx, time.Duration(s.MS)*time.Millisecond)
		_ = v.turn.CPU.Acquire(context.WithoutCancel(v.ctx))
	case "fail":
		v.failed = true
	}
}

// increment adds one to a counter of the tenant's instance.
func (v *visit) increment(s step) {
	for range 3 {
		got, fault := v.call(abi.OpKVGet, map[string]any{"key": "n", "scope": "instance"})
		var was struct{ Value string }
		var expect any
		next := "1"
		switch {
		case fault == nil:
			_ = json.Unmarshal(got, &was) // the host's own JSON
			n, _ := strconv.Atoi(was.Value)
			expect, next = was.Value, strconv.Itoa(n+1)
		case fault.Code != abi.CodeNotFound:
			return
		}
		v.world.ledger.tryCount()
		got, fault = v.call(abi.OpKVCas, map[string]any{"key": "n", "scope": "instance", "expect": expect, "value": next})
		if fault != nil || strings.Contains(string(got), "true") {
			if fault == nil {
				v.world.ledger.counted(v.turn.Tenant+"/"+v.in.Agent.Instance, s.Mark)
			}
			return
		}
	}
}

func (v *visit) mail(tool string, args map[string]any) *abi.Error {
	raw, _ := json.Marshal(args) // always encodes
	_, fault := v.call(abi.OpMail, map[string]any{"tool": tool, "args": json.RawMessage(raw)})
	return fault
}

// call makes one op, without the CPU token as a guest's ops are.
func (v *visit) call(op abi.Op, args map[string]any) ([]byte, *abi.Error) {
	raw, _ := json.Marshal(args) // always encodes
	v.turn.CPU.Release()
	body, fault := v.turn.Ops.Call(v.ctx, op, raw)
	_ = v.turn.CPU.Acquire(context.WithoutCancel(v.ctx)) // tokens come back when turns end
	return body, fault
}

func (p *plan) text() string {
	raw, _ := json.Marshal(p) // always encodes
	return string(raw)
}

package capability

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
)

// parrot is a model that repeats the last message, word by word. It reserves 100
// tokens a call, and a call costs as many as the message has bytes.
type parrot struct {
	mu    sync.Mutex
	keys  []string
	fault *abi.Error
	cost  swarm.Spend // of a fault
}

func (*parrot) Name() string { return "parrot-1" }

func (*parrot) MaxCost(abi.ChatRequest) swarm.Spend { return swarm.Spend{Tokens: 100, MicroUSD: 1000} }

func (p *parrot) Chat(_ context.Context, req abi.ChatRequest, key string, emit func(abi.ChatPiece) error) (abi.ChatResponse, swarm.Spend, *ModelFault) {
	p.mu.Lock()
	p.keys = append(p.keys, key)
	p.mu.Unlock()
	if p.fault != nil {
		return abi.ChatResponse{}, p.cost, &ModelFault{p.fault, "models.parrot: connection refused"}
	}
	text := req.Messages[len(req.Messages)-1].Content
	for i, word := range strings.SplitAfter(text, " ") {
		if emit == nil {
			break
		}
		piece := abi.ChatPiece{Delta: word}
		if i == 0 {
			piece = abi.ChatPiece{Reasoning: "hm"}
			_ = emit(abi.ChatPiece{Delta: word})
		}
		_ = emit(piece)
	}
	n := int64(len(text))
	return abi.ChatResponse{
		Text: text, Reasoning: "hm", ToolCalls: []abi.ChatCall{}, Finish: abi.FinishStop,
		Usage: abi.ChatUsage{InputTokens: n - 1, OutputTokens: 1, MicroUSD: n * 10},
	}, swarm.Spend{Tokens: n, MicroUSD: n * 10}, nil
}

func (p *parrot) sent() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.keys)
}

// talking is a host whose entrypoint may ask a parrot.
func talking(t *testing.T, p *parrot, turn func(v *visit)) *host {
	h := oneAgent(t, turn)
	h.models = map[string]Model{"default": p, "other": p}
	h.allow.LLM = []string{"default"}
	return h
}

func ask(text string) string {
	raw, _ := json.Marshal(abi.ChatRequest{Model: "default", Messages: []abi.ChatMessage{{Role: abi.RoleUser, Content: text}}})
	return string(raw)
}

// spentBy is what the task's record has, and the tenant's day.
func (h *host) spentBy(t *testing.T) (task, agent, today swarm.Spend) {
	t.Helper()
	snap, err := h.rt.Task(context.Background(), h.key())
	if err != nil {
		t.Fatal(err)
	}
	kept, err := h.store.Footprint(context.Background(), swarm.DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	return snap.Task.Usage.Spend, snap.Task.Spent["boss"], kept.Spend
}

// A call asks under its key and costs what it has cost: in the task, of its agent,
// in the turn's record and in the tenant's day.
func TestChat(t *testing.T) {
	t.Parallel()
	p := &parrot{}
	h := talking(t, p, func(v *visit) {
		v.tell([]string{v.call(abi.OpLLMChat, ask("tea < 5")), v.call(abi.OpLLMChat, ask("two"))})
	})
	h.start(0, false)
	defer h.stop()
	want := `{"text":"tea < 5","reasoning":"hm","tool_calls":[],"finish":"stop","usage":{"input_tokens":6,"output_tokens":1,"micro_usd":70}}`
	if got := h.told(t); got[0] != want {
		t.Errorf("told %s, want %s", got[0], want)
	}
	if keys := p.sent(); len(keys) != 2 || len(keys[0]) != 64 || keys[0] == keys[1] {
		t.Errorf("keys %q", keys)
	}
	cost := swarm.Spend{Tokens: 10, MicroUSD: 100}
	if task, agent, today := h.spentBy(t); task != cost || agent != cost || today != cost {
		t.Errorf("task %+v, agent %+v, today %+v, want %+v", task, agent, today, cost)
	}
	rec, err := h.store.Record(context.Background(), h.key(), 1)
	if err != nil || rec.End.Usage.Spend != cost {
		t.Errorf("recorded usage %+v, %v", rec.End, err)
	}
}

// A guest that submits the call reads lines as they come.
func TestChatStream(t *testing.T) {
	t.Parallel()
	h := talking(t, &parrot{}, func(v *visit) { v.tell([]string{v.read(abi.OpLLMChat, ask("tea or coffee"))}) })
	h.start(0, false)
	defer h.stop()
	want := []string{
		`{"delta":"tea "}`, `{"reasoning":"hm"}`, `{"delta":"or "}`, `{"delta":"coffee"}`,
		`{"end":{"text":"","tool_calls":[],"finish":"stop","usage":{"input_tokens":12,"output_tokens":1,"micro_usd":130}}}`, "",
	}
	if got := h.told(t); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// What no model is needed for to be refused is refused at once and costs nothing.
func TestChatRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change    func(*host)
		req, want string
	}{
		"no grant":  {func(h *host) { h.allow.LLM = nil }, ask("x"), `DENIED: the model "default" is not granted to agent "boss"; it takes allow = { llm = ["default"] } in [agents.boss]`},
		"another":   {func(*host) {}, strings.Replace(ask("x"), "default", "other", 1), `DENIED: the model "other" is not granted to agent "boss"; it takes allow = { llm = ["other"] } in [agents.boss]`},
		"no model":  {func(h *host) { delete(h.models, "default") }, ask("x"), `NOT_FOUND: there is no model "default"; it takes [models.default]`},
		"no models": {func(h *host) { h.models = nil }, ask("x"), `UNSUPPORTED: this host`},
		"bad JSON":  {func(*host) {}, `{"model":7}`, `INVALID: llm.chat: model must be a text, not the number 7`},
		"task": {func(h *host) { h.change = func(d *swarm.Definition) { d.Limits.Spend.Tokens = 99 } }, ask("x"),
			`LIMIT: the call may use up to 100 tokens, and its task has used 0 of 99; raise [limits] task_tokens, or ask for less`},
		"task's money": {func(h *host) { h.change = func(d *swarm.Definition) { d.Limits.Spend.MicroUSD = 999 } }, ask("x"),
			`LIMIT: the call may cost up to $0.001, and its task has spent $0 of $0.000999; raise [limits] task_usd, or ask for less`},
		"agent": {func(h *host) { h.change = func(d *swarm.Definition) { d.Agents[0].Limits.Spend.Tokens = 99 } }, ask("x"),
			`LIMIT: the call may use up to 100 tokens, and agent "boss" has in this task used 0 of 99; raise [agents.boss] limits.tokens, or`},
		"agent's money": {func(h *host) { h.change = func(d *swarm.Definition) { d.Agents[0].Limits.Spend.MicroUSD = 1 } }, ask("x"),
			`LIMIT: the call may cost up to $0.001, and agent "boss" has in this task spent $0 of $0.000001; raise [agents.boss] limits.usd, or`},
		"tenant": {func(h *host) { h.tenants = daily(swarm.Spend{Tokens: 99}) }, ask("x"),
			`LIMIT: the call may use up to 100 tokens, and tenant "default" has today (UTC) used 0 of 99; raise [tenants.default] tokens_per_day, or`},
		"tenant's money": {func(h *host) { h.tenants = daily(swarm.Spend{MicroUSD: 1}) }, ask("x"),
			`LIMIT: the call may cost up to $0.001, and tenant "default" has today (UTC) spent $0 of $0.000001; raise [tenants.default] usd_per_day, or`},
	} {
		p := &parrot{}
		h := talking(t, p, func(v *visit) { v.tell([]string{v.call(abi.OpLLMChat, c.req)}) })
		c.change(h)
		h.start(0, false)
		if got := h.told(t); !strings.HasPrefix(got[0], c.want) {
			t.Errorf("%s: %q, want %q", name, got[0], c.want)
		}
		if writes := h.store.n.Load(); writes != 2 || len(p.sent()) != 0 {
			t.Errorf("%s: %d durable writes, %d calls", name, writes, len(p.sent()))
		}
		if task, _, today := h.spentBy(t); task != (swarm.Spend{}) || today != (swarm.Spend{}) {
			t.Errorf("%s: it has cost %+v, %+v", name, task, today)
		}
		h.stop()
	}
}

func daily(bound swarm.Spend) map[string]swarm.Tenant {
	return map[string]swarm.Tenant{swarm.DefaultTenant: {Quota: swarm.Quota{SpendPerDay: bound}}}
}

// What a call has not used is there for the next ones; what it has used is not,
// also after a restart.
func TestChatBudgetIsSettled(t *testing.T) {
	t.Parallel()
	h := talking(t, &parrot{}, func(v *visit) {
		var got []string
		for range 4 {
			text, _, _ := strings.Cut(v.call(abi.OpLLMChat, ask("ten bytes.")), ":")
			got = append(got, text)
		}
		v.tell(got)
	})
	h.tenants = daily(swarm.Spend{Tokens: 120})
	h.start(0, false)
	if got, want := h.told(t), []string{`{"text"`, `{"text"`, `{"text"`, "LIMIT"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	h.restart()
	defer h.stop()
	p := h.post()
	p.Key, p.Task = "k2", "t2"
	if a, err := h.send(p); err != nil || a.Body != "LIMIT\nLIMIT\nLIMIT\nLIMIT" {
		t.Errorf("the next host: %q, %v", a.Body, err)
	}
}

// A call that fails costs what the model says it does.
func TestChatFails(t *testing.T) {
	t.Parallel()
	for _, cost := range []swarm.Spend{{}, {Tokens: 100, MicroUSD: 1000}} {
		p := &parrot{fault: abi.Errorf(abi.CodeUnavailable, abi.OpLLMChat, "overloaded", "busy"), cost: cost}
		h := talking(t, p, func(v *visit) { v.tell([]string{v.call(abi.OpLLMChat, ask("x"))}) })
		h.start(0, false)
		if got := h.told(t); got[0] != "UNAVAILABLE: busy" {
			t.Errorf("told %q", got)
		}
		if task, _, today := h.spentBy(t); task != cost || today != cost {
			t.Errorf("it has cost %+v, %+v, want %+v", task, today, cost)
		}
		h.stop()
	}
}

// Wherever the host dies, the next one answers from the record, sends again under
// the same key what has no answer, and counts every answer once. What may have
// been answered and must not be sent again counts with all that was reserved.
func TestChatInDoubt(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{true, false} {
		for dies := int64(2); dies <= 6; dies++ {
			p := &parrot{}
			h := talking(t, p, func(v *visit) {
				v.tell([]string{v.call(abi.OpLLMChat, ask("one")), v.call(abi.OpLLMChat, ask("three"))})
			})
			h.allow.RetryInDoubt = again
			h.start(dies, false) // a post, intent, answer, intent, answer, the turn
			_, _ = h.ask()
			h.stop()
			h.start(0, false)
			got := h.told(t)
			want := swarm.Spend{Tokens: 8, MicroUSD: 80}
			if !again {
				for i, n := range []int64{3, 5} {
					if strings.HasPrefix(got[i], "UNAVAILABLE: the host stopped before the answer came") {
						want = want.Add(swarm.Spend{Tokens: 100 - n, MicroUSD: 1000 - 10*n})
					}
				}
			}
			task, agent, today := h.spentBy(t)
			if task != want || agent != want || today != want {
				t.Errorf("again %v, death at write %d: task %+v, agent %+v, today %+v, want %+v; told %q", again, dies, task, agent, today, want, got)
			}
			keys := p.sent()
			slices.Sort(keys)
			if n := len(slices.Compact(keys)); n > 2 {
				t.Errorf("death at write %d: %d keys for 2 calls", dies, n)
			}
			h.stop()
		}
	}
}

// Why a model has failed is in the turn's record once, wherever the host dies in the turn and the next one answers
// the call from the record.
func TestModelFailureOfAPriorAttempt(t *testing.T) {
	t.Parallel()
	for dies := int64(2); dies <= 6; dies++ {
		h := talking(t, &parrot{fault: abi.Errorf(abi.CodeUnavailable, abi.OpLLMChat, "unavailable", "no answer")}, func(v *visit) {
			v.tell([]string{v.call(abi.OpLLMChat, ask("one")), v.call(abi.OpLLMChat, ask("three"))})
		})
		h.allow.RetryInDoubt = true
		h.start(dies, false) // a post, intent, answer, intent, answer, the turn
		_, _ = h.ask()
		h.stop()
		h.start(0, false)
		h.told(t)
		turns, _, err := h.rt.Turns(t.Context(), h.key(), 0, 10)
		want := []swarm.ModelFailure{{Model: "parrot-1", Kind: "unavailable", Cause: "models.parrot: connection refused", Count: 2}}
		if err != nil || len(turns) == 0 || !slices.Equal(turns[0].End.ModelFailures, want) {
			t.Errorf("death at write %d: %v, %+v, want %+v", dies, err, turns, want)
		}
		h.stop()
	}
}

// What a discarded turn has spent is spent.
func TestChatOfADiscardedTurn(t *testing.T) {
	t.Parallel()
	h := talking(t, &parrot{}, nil)
	h.modules["boss"] = trapping{guest{"m1", func(v *visit) { v.call(abi.OpLLMChat, ask("five!")) }}}
	h.start(0, false)
	defer h.stop()
	if a, err := h.ask(); err != nil || a.State != swarm.StateFailed {
		t.Fatal(a, err)
	}
	want := swarm.Spend{Tokens: 5, MicroUSD: 50}
	if task, _, today := h.spentBy(t); task != want || today != want {
		t.Errorf("it has cost %+v, %+v", task, today)
	}
}

// Faults of a conversation name the member.
func TestCheckChat(t *testing.T) {
	t.Parallel()
	user := `{"role":"user","content":"x"}`
	long := strings.Repeat(user+",", maxChatMessages) + user
	for rest, want := range map[string]string{
		`"messages":[]`:                                                                                             "INVALID: llm.chat: messages must hold at least one message",
		`"messages":[` + long + `]`:                                                                                 "LIMIT: a conversation of 2001 messages, at most 2000",
		`"messages":[{"role":"boss","content":""}]`:                                                                 "INVALID: llm.chat: messages[0].role must be system, user, assistant or tool",
		`"messages":[` + user + `,{"role":"tool"}]`:                                                                 "INVALID: llm.chat: messages[1].tool_call_id is missing",
		`"messages":[{"role":"user","error":true}]`:                                                                 "INVALID: llm.chat: messages[0]: tool_call_id and error are for a tool's message",
		`"messages":[{"role":"user","carry":{}}]`:                                                                   "INVALID: llm.chat: messages[0]: tool_calls and carry are for an assistant's message",
		`"messages":[{"role":"assistant","tool_calls":[{"id":"a"}]}]`:                                               "INVALID: llm.chat: messages[0].tool_calls[0] must have an id and a name",
		`"messages":[` + user + `],"max_tokens":-1`:                                                                 "INVALID: llm.chat: max_tokens must not be negative",
		`"messages":[` + user + `],"temperature":2.1`:                                                               "INVALID: llm.chat: temperature must be from 0 to 2, not 2.1",
		`"messages":[` + user + `],"response_schema":[]`:                                                            "INVALID: llm.chat: response_schema must be a JSON Schema, an object",
		`"messages":[` + user + `],"tools":[{"name":"a b"}]`:                                                        `INVALID: llm.chat: tools[0].name "a b" does not match`,
		`"messages":[` + user + `],"tools":[{"name":"a"},{"name":"a"}]`:                                             `INVALID: llm.chat: tools[1].name "a" is taken`,
		`"messages":[` + user + `],"tools":[{"name":"a","parameters":[]}]`:                                          `INVALID: llm.chat: tools[0].parameters must be a JSON Schema, an object`,
		`"messages":[` + user + `],"tool_choice":"a"`:                                                               `INVALID: llm.chat: tool_choice must be auto, none, required or the name of one of the tools, not "a"`,
		`"messages":[` + user + `],"tool_choice":"required"`:                                                        `INVALID: llm.chat: tool_choice is required and there are no tools`,
		`"messages":[` + user + `],"tools":[` + strings.TrimSuffix(strings.Repeat(`{"name":"a"},`, 129), ",") + `]`: `LIMIT: 129 tools, at most 128`,
	} {
		o := bareOps(t, builtinOps())
		o.models = map[string]Model{"m": &parrot{}}
		_, fault := o.Call(t.Context(), abi.OpLLMChat, []byte(`{"model":"m",`+rest+`}`))
		if fault == nil || !strings.HasPrefix(fault.Error(), want) {
			t.Errorf("%.80s: %v, want %s", rest, fault, want)
		}
	}
	if fault := checkChat(abi.ChatRequest{Model: "", Messages: []abi.ChatMessage{{Role: "user"}}}); fault == nil {
		t.Error("no model passes")
	}
	nan := math.NaN()
	if fault := checkChat(abi.ChatRequest{Model: "m", Messages: []abi.ChatMessage{{Role: "user"}}, Temperature: &nan}); fault == nil {
		t.Error(fmt.Sprint(nan) + " passes")
	}
}

// read submits an op and reads its answer as it comes.
func (v *visit) read(op abi.Op, req string) (text string) {
	a, fault := v.t.Ops.Submit(v.ctx, op, []byte(req))
	if fault != nil {
		return fault.Error()
	}
	defer a.Close()
	for buf := make([]byte, 16); ; {
		n, fault := a.Read(v.ctx, buf)
		switch {
		case fault != nil:
			return fault.Error()
		case n == 0:
			return text
		}
		text += string(buf[:n])
	}
}

// What was reserved for a call that never left comes back: when the guest closes
// it, and when the turn ends. One that was cut off counts with all of it.
func TestChatThatNeverLeft(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, maxAsyncOps)
	most := swarm.Spend{Tokens: 10}
	do := func(ctx context.Context, out *asyncOp) *abi.Error {
		out.setCost(most)
		begun <- struct{}{}
		<-ctx.Done()
		return nil
	}
	o, _ := withOps(t, table{abi.OpLLMChat: {dispatch: func(*ops, []byte) (handler, bool) {
		return handler{maxCost: most, streams: true, effect: func(*ops, context.Context, []byte, bool) (effectFunc, *abi.Error) { return do, nil }}, true
	}}})
	book := o.j.writer.(*fakeWriter)
	for range maxAsyncOps {
		defer submit(t, o).Close()
		<-begun
	}
	closed, left := submit(t, o), submit(t, o)
	if book.spent.Tokens != 100 {
		t.Fatalf("%+v are reserved", book.spent)
	}
	closed.Close()
	if book.spent.Tokens != 90 {
		t.Errorf("after one was closed %+v are reserved", book.spent)
	}
	defer left.Close()
	rec := o.j.record(nil)
	var entries swarm.Spend
	for _, e := range slices.Concat(book.durable(), rec.Entries) {
		entries = entries.Add(e.Spend)
	}
	if book.spent.Tokens != 80 || entries != book.spent {
		t.Errorf("at the end %+v are reserved, %+v by the entries", book.spent, entries)
	}
}

// A call that does not fit into the budget does not begin, and the next may.
func TestChatBeyondBudget(t *testing.T) {
	t.Parallel()
	o, _ := withOps(t, table{abi.OpLLMChat: {dispatch: func(_ *ops, req []byte) (handler, bool) {
		return handler{maxCost: swarm.Spend{Tokens: int64(len(req))}, effect: func(*ops, context.Context, []byte, bool) (effectFunc, *abi.Error) {
			return func(_ context.Context, out *asyncOp) *abi.Error { return out.write([]byte("yes")) }, nil
		}}, true
	}}})
	if _, fault := o.Call(t.Context(), abi.OpLLMChat, make([]byte, maxFakeTokens+1)); fault == nil || fault.Code != abi.CodeLimit {
		t.Error(fault)
	}
	if got, fault := o.Call(t.Context(), abi.OpLLMChat, []byte("x")); string(got) != "yes" {
		t.Error(fault)
	}
}

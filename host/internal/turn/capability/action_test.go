package capability

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
	"skep/spec/mail"
)

// deed is what an action in Go does, and how it ends.
type deed func(v *visit, args string) (answer string, exit *turn.Exit)

// actor is a module whose actions are in Go.
type actor struct {
	guest
	deed deed
	runs *atomic.Int64
}

func (a actor) Action(ctx context.Context, t turn.Turn) turn.Result {
	a.runs.Add(1)
	var in struct {
		Args   json.RawMessage
		Params json.RawMessage
	}
	if err := json.Unmarshal(t.Input, &in); err != nil {
		panic(err)
	}
	answer, exit := a.deed(&visit{ctx: ctx, t: t}, string(in.Args)+string(in.Params))
	if err := context.Cause(ctx); err != nil {
		exit = turn.ContextExit(ctx)
	}
	return turn.Result{Output: []byte(answer), Exit: exit, Fuel: 1000, HostCalls: 1}
}

// newAction makes an action of the boss.
func (h *host) newAction(name string, d deed) (*Action, *atomic.Int64) {
	runs := &atomic.Int64{}
	a := &Action{
		Name: name, Timeout: time.Minute, Params: json.RawMessage(`{"unit":"cent"}`),
		Binding: Binding{Module: actor{guest{digest: "a1"}, d, runs}, Limits: turn.Limits{}.WithDefaults()},
	}
	if h.actions == nil {
		h.actions = map[string]*Action{}
	}
	h.actions[name] = a
	was := h.change
	h.change = func(def *swarm.Definition) {
		if was != nil {
			was(def)
		}
		def.Agents[0].Actions = append(def.Agents[0].Actions, name)
		def.Coded = append(def.Coded, abi.Tool{Name: name, Description: "d", Parameters: json.RawMessage(`{"type":"object"}`)})
	}
	return a, runs
}

// tells makes the boss end its task with the answers to its calls.
func tells(calls ...string) func(*visit) {
	return func(v *visit) {
		var told []string
		for _, c := range calls {
			op, req, _ := strings.Cut(c, " ")
			told = append(told, v.call(map[string]abi.Op{"action": abi.OpAction, "get": abi.OpKVGet, "fetch": abi.OpHTTPFetch}[op], req))
		}
		v.mail(mail.ToolTaskComplete, obj{"finish_message": strings.Join(told, "; ")})
	}
}

func (h *host) asks(t *testing.T, script func(*visit)) swarm.Answer {
	t.Helper()
	h.modules["boss"] = guest{"m1", script}
	h.start(0, false)
	a, err := h.ask()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// An action answers inside the turn, with its own grants and its params; its answer
// stands in the history and the log, and what it took counts to the turn.
func TestActionAnswers_G48(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.allow.KV = swarm.KVTask
	a, runs := h.newAction("price_of", func(v *visit, args string) (string, *turn.Exit) {
		told := []string{args, v.call(abi.OpKVPut, `{"scope":"agent","key":"k","value":"mine"}`), v.call(abi.OpKVGet, `{"key":"k"}`)}
		for op, req := range map[abi.Op]string{abi.OpMail: `{"tool":"help"}`, abi.OpHistory: `{}`} {
			told = append(told, v.call(op, req)[:6])
		}
		out, _ := json.Marshal(strings.Join(told, ","))
		return string(out), nil
	})
	a.Allow.KV = swarm.KVAgent
	got := h.asks(t, tells(`action {"name":"price_of","args":{"item":"tea"}}`, `get {"key":"k"}`, `get {"scope":"task","key":"k"}`))
	defer func() { h.stop() }()
	want := `"{\"item\":\"tea\"}{\"unit\":\"cent\"},{},{\"value\":\"mine\"},DENIED,DENIED"; ` +
		`DENIED: the scope agent is not granted to agent "boss"; it takes allow = { kv = "agent" } in [agents.boss]; NOT_FOUND: there is no key "k" in the scope task`
	if got.Body != want || runs.Load() != 1 {
		t.Errorf("%d runs: %s\nwant %s", runs.Load(), got.Body, want)
	}
	story := strings.Join(h.story(), "\n")
	for _, want := range []string{"\naction_call\naction_complete\n", `"kind":"call","call":{"id":"t1.c1","name":"price_of","args":{"item":"tea"}}`, `"ok":true,"text":"SUCCESS: {\"item\":\"tea\"}`} {
		if !strings.Contains(story, want) {
			t.Errorf("no %q in\n%s", want, story)
		}
	}
	events, err := h.rt.Events(context.Background(), h.key(), 0, 1000)
	ends := slices.DeleteFunc(events, func(e swarm.Event) bool { return e.Name != "action_complete" })
	if err != nil || len(ends) != 1 || !strings.Contains(string(ends[0].Extra), `"tool_call_id":"t1.c1","tool_name":"price_of"`) ||
		!strings.Contains(string(ends[0].Extra), `"result":"SUCCESS: {`) {
		t.Errorf("%+v, %v", ends, err)
	}
	rec, err := h.store.Record(context.Background(), h.key(), 1)
	if err != nil || rec.End.Usage.Fuel < 1000 {
		t.Errorf("%+v, %v", rec.End, err)
	}
}

// A failing action is a failure (G-22): its caller is told why and goes on, what it
// staged is dropped, and the agent hears of it.
func TestActionFails_G22(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		exit *turn.Exit
		want string
	}{
		"an error": {&turn.Exit{Kind: turn.ExitFailed, Message: "NOT_FOUND: no tea"}, "UPSTREAM: failed to execute action tool: NOT_FOUND: no tea"},
		"a trap":   {&turn.Exit{Kind: turn.ExitTrap, Message: "unreachable"}, "UPSTREAM: failed to execute action tool: unreachable"},
		"no fuel": {&turn.Exit{Kind: turn.ExitFuel, Limit: "limits.fuel", Message: "too much"},
			"LIMIT: failed to execute action tool: too much; [actions.price_of] limits.fuel allows more"},
		"a fault of the host": {&turn.Exit{Kind: turn.ExitHost, Message: "gone"}, "INTERNAL: failed to execute action tool: gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			a, _ := h.newAction("price_of", func(v *visit, _ string) (string, *turn.Exit) {
				v.call(abi.OpKVPut, `{"scope":"instance","key":"k","value":"half"}`)
				return "", c.exit
			})
			a.Allow.KV, h.allow.KV = swarm.KVInstance, swarm.KVInstance
			got := h.asks(t, tells(`action {"name":"price_of","args":{}}`, `get {"scope":"instance","key":"k"}`))
			defer func() { h.stop() }()
			if want := c.want + `; NOT_FOUND: there is no key "k" in the scope instance`; got.Body != want {
				t.Errorf("%s, want %s", got.Body, want)
			}
			story := strings.Join(h.story(), "\n")
			if !strings.Contains(story, "\naction_call\naction_error\n") || !strings.Contains(story, "ERROR: failed to execute action tool: ") {
				t.Error(story)
			}
		})
	}
}

// What is refused before an action runs does not run it.
func TestActionsThatAreRefused(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	a, runs := h.newAction("price_of", func(*visit, string) (string, *turn.Exit) { return "", nil })
	a.Check = func([]byte) error { return errors.New("item: is missing") }
	_, nothing := h.newAction("nothing", func(*visit, string) (string, *turn.Exit) { return "", nil })
	got := h.asks(t, tells(`action {"name":"price_of","args":{}}`, `action {"name":"other"}`, `action {"args":{}}`, `action {"name":"nothing"}`))
	defer func() { h.stop() }()
	want := `INVALID: the arguments of action "price_of": item: is missing; UNSUPPORTED: agent "boss" has no action "other"; ` +
		`[agents.boss] actions names those it may call; INVALID: action: name is missing; it must be the name of an action; null`
	if got.Body != want || runs.Load() != 0 || nothing.Load() != 1 {
		t.Errorf("%d runs: %s\nwant %s", runs.Load(), got.Body, want)
	}
}

// Actions call actions where they are granted them, eight deep.
func TestActionsInActions(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	deep, runs := h.newAction("deep", func(v *visit, _ string) (string, *turn.Exit) {
		return `["` + strings.ReplaceAll(v.call(abi.OpAction, `{"name":"deep","args":{}}`), `"`, "'") + `"]`, nil
	})
	flat, _ := h.newAction("flat", func(v *visit, _ string) (string, *turn.Exit) {
		out, _ := json.Marshal(v.call(abi.OpAction, `{"name":"deep","args":{}}`))
		return string(out), nil
	})
	deep.Actions, deep.Calls = h.actions, []string{"deep"}
	flat.Actions = nil
	got := h.asks(t, tells(`action {"name":"deep","args":{}}`, `action {"name":"flat","args":{}}`))
	defer func() { h.stop() }()
	if runs.Load() != maxDepth || !strings.Contains(got.Body, "LIMIT: actions run within each other 8 deep at most") ||
		!strings.Contains(got.Body, `action \"flat\" has no action \"deep\"; [actions.flat] actions names`) {
		t.Errorf("%d runs: %s", runs.Load(), got.Body)
	}
}

// An action that takes too long is stopped, and its caller is not. A run that takes
// the turn up again does not run it again.
func TestActionOutOfTime(t *testing.T) {
	t.Parallel()
	for dies := range int64(6) {
		h := newHost(t)
		a, runs := h.newAction("slow", func(v *visit, _ string) (string, *turn.Exit) {
			<-v.ctx.Done()
			return "", nil
		})
		a.Timeout = time.Millisecond
		h.modules["boss"] = guest{"m1", tells(`action {"name":"slow","args":{}}`, `fetch one`)}
		h.start(dies, true)
		got, err := h.ask()
		if err != nil {
			h.restart()
			got, err = h.ask()
		}
		want := "DEADLINE: failed to execute action tool: it took longer than the 1ms of [actions.slow] timeout; answer to one under "
		if err != nil || !strings.HasPrefix(got.Body, want) || runs.Load() > 2 {
			t.Errorf("%d: %d runs, %v: %s", dies, runs.Load(), err, got.Body)
		}
		h.stop()
	}
}

// shopping is an action between effects, and within.
func shopping(v *visit, _ string) (string, *turn.Exit) {
	v.call(abi.OpLog, `{"message":"shopping"}`)
	one := v.call(abi.OpHTTPFetch, "inside")
	v.call(abi.OpKVPut, `{"scope":"instance","key":"k","value":"bought"}`)
	out, _ := json.Marshal(one + v.call(abi.OpRandom, "{}"))
	return string(out), nil
}

// Death at every durable write of a turn that calls an action: it ends as without,
// and nothing is sent under two keys.
func TestDeathAroundAnAction(t *testing.T) {
	t.Parallel()
	for dies := int64(1); dies <= 8; dies++ {
		for _, behind := range []bool{false, true} {
			h := newHost(t)
			h.allow.KV = swarm.KVInstance
			a, _ := h.newAction("shop", shopping)
			a.Allow.KV = swarm.KVInstance
			script := tells(`fetch one`, `action {"name":"shop","args":{}}`, `fetch two`, `get {"scope":"instance","key":"k"}`)
			h.modules["boss"] = guest{"m1", script}
			h.start(dies, behind)
			got, err := h.ask()
			if err != nil {
				h.restart()
				got, err = h.ask()
			}
			if err != nil || !strings.HasPrefix(got.Body, "answer to one under ") || !strings.Contains(got.Body, "answer to inside under ") ||
				!strings.HasSuffix(got.Body, `; {"value":"bought"}`) {
				t.Errorf("%d behind %v: %v, %s", dies, behind, err, got.Body)
			}
			if len(h.world.sent) != 3 {
				t.Errorf("%d behind %v: sent %v", dies, behind, h.world.sent)
			}
			h.stop()
		}
	}
}

// found are modules by their digests.
type found map[string]Module

func (f found) Module(_ context.Context, digest string) (Module, error) {
	if m := f[digest]; m != nil {
		return m, nil
	}
	return nil, errors.New("no such module")
}

// A replay runs actions on their recorded modules, and reports an action that deviates.
func TestReplayOfAnAction(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	a, runs := h.newAction("shop", shopping)
	a.Allow.KV = swarm.KVInstance
	script := tells(`action {"name":"shop","args":{}}`, `fetch two`)
	h.asks(t, script)
	rec, err := h.store.Record(context.Background(), h.key(), 1)
	h.stop()
	if err != nil {
		t.Fatal(err)
	}
	replay := func(m Modules) ReplayResult {
		t.Helper()
		got, err := Replay(t.Context(), &offline{turn: script, fuel: rec.End.Usage.Fuel - 1000}, testRecipe, rec, [32]byte{}, ReplayOptions{Modules: m})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := replay(found{"a1": a.Module}); got.Difference != "" || got.Fuel != rec.End.Usage.Fuel || runs.Load() != 2 {
		t.Errorf("%d runs: %+v", runs.Load(), got)
	}
	if got := replay(nil); got.Difference != "" || runs.Load() != 2 {
		t.Errorf("without modules: %d runs: %+v", runs.Load(), got)
	}
	other := actor{guest{digest: "a1"}, func(*visit, string) (string, *turn.Exit) { return `"x"`, nil }, runs}
	if got := replay(found{"a1": other}); !strings.Contains(got.Difference, "did not repeat itself") {
		t.Errorf("%+v", got)
	}
	if got := replay(found{}); !strings.Contains(got.Difference, `the action "shop" ran on the module a1, which this host cannot run any more: no such module`) {
		t.Errorf("%+v", got)
	}
}

// An action of the host is an effect: it has a key, and is not done again when its
// answer is known.
func TestHostAction(t *testing.T) {
	t.Parallel()
	for dies := range int64(6) {
		h := newHost(t)
		a, _ := h.newAction("write", nil)
		a.Module, a.Allow.RetryInDoubt = nil, true
		a.Host = func(_ context.Context, c HostCall) (json.RawMessage, *abi.Error) {
			if h.world.has(c.Key) && !c.Retry || c.Tenant != swarm.DefaultTenant {
				t.Errorf("%+v", c)
			}
			h.world.reach(c.Key)
			if string(c.Args) == `{"path":".."}` {
				return nil, abi.Errorf(abi.CodeDenied, abi.OpAction, "path", "outside")
			}
			return json.RawMessage(`"written"`), nil
		}
		h.modules["boss"] = guest{"m1", tells(`action {"name":"write","args":{}}`, `action {"name":"write","args":{"path":".."}}`)}
		h.start(dies, true)
		got, err := h.ask()
		if err != nil {
			h.restart()
			got, err = h.ask()
		}
		if want := `"written"; DENIED: failed to execute action tool: outside`; err != nil || got.Body != want {
			t.Errorf("%d: %v, %s", dies, err, got.Body)
		}
		if len(h.world.sent) != 2 || !strings.Contains(strings.Join(h.story(), "\n"), "\naction_call\naction_complete\naction_call\naction_error\n") {
			t.Errorf("%d: %v\n%s", dies, h.world.sent, strings.Join(h.story(), "\n"))
		}
		h.stop()
	}
}

// The lines of a turn's actions count to the turn: calls of actions must not fill the
// operator's log.
func TestActionsLogWithinTheirTurn(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.newAction("chatter", func(v *visit, _ string) (string, *turn.Exit) {
		n := 0
		for v.call(abi.OpLog, `{"message":"x"}`) == "{}" && n < 700 {
			n++
		}
		return strconv.Itoa(n), nil
	})
	got := h.asks(t, tells(`action {"name":"chatter"}`, `action {"name":"chatter"}`, `action {"name":"chatter"}`))
	defer func() { h.stop() }()
	if want := "700; 299; 0"; got.Body != want { // one line more was taken where it stopped
		t.Errorf("lines %q, want %q", got.Body, want)
	}
}

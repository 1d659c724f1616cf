package skep_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

// turnFunc makes an agent of a function.
type turnFunc func(t *skep.Turn) error

func (f turnFunc) Turn(t *skep.Turn) error { return f(t) }

func TestTypedToolsSayWhatMAILWants(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		call func(t *skep.Turn) error
		want string
	}{
		{"send_request", func(t *skep.Turn) error { return t.SendRequest("b", "s <1>", "x") },
			`{"tool":"send_request","args":{"target":"b","subject":"s <1>","body":"x"}}`},
		{"send_response", func(t *skep.Turn) error { return t.SendResponse("b", "s", "x") },
			`{"tool":"send_response","args":{"target":"b","subject":"s","body":"x"}}`},
		{"send_interrupt", func(t *skep.Turn) error { return t.SendInterrupt("b", "s", "x") },
			`{"tool":"send_interrupt","args":{"target":"b","subject":"s","body":"x"}}`},
		{"send_broadcast", func(t *skep.Turn) error { return t.SendBroadcast([]string{"all"}, "s", "x") },
			`{"tool":"send_broadcast","args":{"targets":["all"],"subject":"s","body":"x"}}`},
		{"acknowledge_broadcast", func(t *skep.Turn) error { return t.AcknowledgeBroadcast("") },
			`{"tool":"acknowledge_broadcast","args":{"note":null}}`},
		{"ignore_broadcast", func(t *skep.Turn) error { return t.IgnoreBroadcast("dull") },
			`{"tool":"ignore_broadcast","args":{"reason":"dull"}}`},
		{"await_message", func(t *skep.Turn) error { return t.AwaitMessage("") },
			`{"tool":"await_message","args":{"reason":null}}`},
		{"task_complete", func(t *skep.Turn) error { return t.TaskComplete("done") },
			`{"tool":"task_complete","args":{"finish_message":"done"}}`},
		{"help", func(t *skep.Turn) error { _, err := t.Help(skep.HelpTopics{Summary: true}); return err },
			`{"tool":"help","args":{"get_summary":true,"get_identity":false,"get_tool_help":[],"get_full_protocol":false}}`},
	}
	for _, tt := range tests {
		out := skeptest.Run(turnFunc(tt.call), skeptest.Input{CanComplete: true})
		if out.Err != nil || len(out.Calls) != 1 || out.Calls[0].Op != skep.OpMail || string(out.Calls[0].Request) != tt.want {
			t.Errorf("%s: %v, %+v", tt.name, out.Err, out.Calls)
		}
	}
}

func TestErrorsCanBeTold(t *testing.T) {
	t.Parallel()
	in := skeptest.Input{Answer: func(skep.Op, json.RawMessage) (any, error) {
		return nil, &skep.Error{Code: skep.Limit, Reason: "rate", RetryAfter: 1500 * time.Millisecond, Message: "slow down"}
	}}
	out := skeptest.Run(turnFunc(func(turn *skep.Turn) error {
		err := turn.SendRequest("b", "s", "x")
		var e *skep.Error
		if !errors.As(err, &e) || !errors.Is(err, skep.Limit) || errors.Is(err, skep.Denied) {
			t.Errorf("error %v", err)
		}
		if e.Op != "mail" || e.Reason != "rate" || e.RetryAfter != 1500*time.Millisecond || e.Error() != "LIMIT: slow down" {
			t.Errorf("error %+v", e)
		}
		return fmt.Errorf("asking: %w", err)
	}), in)
	if out.Err == nil || out.Err.Code != skep.Limit || out.Err.Message != "asking: LIMIT: slow down" {
		t.Errorf("the turn ended with %+v", out.Err)
	}
	out = skeptest.Run(turnFunc(func(*skep.Turn) error { return errors.New("plain") }), skeptest.Input{})
	if out.Err == nil || out.Err.Code != skep.Internal || out.Err.Message != "plain" {
		t.Errorf("the turn ended with %+v", out.Err)
	}
}

type memory struct {
	Count int `json:"count"`
}

func TestStateGoesFromTurnToTurn(t *testing.T) {
	t.Parallel()
	count := turnFunc(func(t *skep.Turn) error {
		var m memory
		if err := t.State(&m); err != nil {
			return err
		}
		m.Count++
		t.Note(fmt.Sprint("turn ", m.Count))
		if err := t.SetState(m); err != nil {
			return err
		}
		return t.State(&m) // what this turn has set
	})
	var in skeptest.Input
	for i := 1; i <= 3; i++ {
		out := skeptest.Run(count, in)
		if want := fmt.Sprintf(`{"count":%d}`, i); string(out.State) != want || out.Notes[0] != fmt.Sprint("turn ", i) {
			t.Fatalf("turn %d left %s, %q", i, out.State, out.Notes)
		}
		in.State = out.State
	}
	out := skeptest.Run(turnFunc(func(t *skep.Turn) error { return nil }), in)
	if string(out.State) != `{"count":3}` {
		t.Errorf("a turn that sets nothing left %s", out.State)
	}
	out = skeptest.Run(turnFunc(func(t *skep.Turn) error { t.ClearState(); return nil }), in)
	if string(out.State) != "null" {
		t.Errorf("a cleared state is %s", out.State)
	}
	out = skeptest.Run(turnFunc(func(t *skep.Turn) error { t.ClearState(); return errors.New("no") }), in)
	if string(out.State) != `{"count":3}` {
		t.Errorf("a failed turn left %s", out.State)
	}
	if out := skeptest.Run(turnFunc(func(t *skep.Turn) error { return t.SetState(func() {}) }), in); out.Err == nil {
		t.Error("a state that is no JSON was taken")
	}
}

func TestTurnShowsItsInput(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	in := skeptest.Input{
		Agent: "weather", CommTargets: []string{"map"}, CanComplete: true, Tools: []string{"get_forecast"}, Start: start,
		Params: map[string]string{"unit": "K"},
		Message: skep.Message{Type: skep.TypeInterrupt, Subject: "s", Body: "b",
			Sender: skep.Address{Type: skep.AddressAgent, Name: "map"}},
		History: []skep.Entry{
			{Seq: 1, Turn: 1, Time: start, Message: &skep.Message{Type: skep.TypeRequest, Body: "old", Time: start}},
			{Seq: 2, Turn: 1, Time: start, Call: &skep.ToolCall{ID: "c", Name: "help", Args: json.RawMessage(`{}`)}},
			{Seq: 3, Turn: 1, Time: start, Result: &skep.ToolResult{ID: "c", OK: true, Text: "SUCCESS"}},
			{Seq: 4, Turn: 1, Time: start, Note: "n"},
		},
	}
	out := skeptest.Run(turnFunc(func(turn *skep.Turn) error {
		var params struct{ Unit string }
		if err := turn.Params(&params); err != nil {
			return err
		}
		m := turn.Message
		if m.Sender.Name != "map" || m.FromUser() || m.FromSystem() || m.Type != skep.TypeInterrupt || m.Recipients[0].Name != "weather" {
			t.Errorf("message %+v", m)
		}
		id := turn.Agent
		if id.Name != "weather" || id.Swarm != "test" || !id.CanComplete || !reflect.DeepEqual(id.CommTargets, []string{"map"}) {
			t.Errorf("identity %+v", id)
		}
		tools, err := turn.Tools()
		if err != nil {
			return err
		}
		if last := tools[len(tools)-1]; last.Name != "get_forecast" || params.Unit != "K" || !turn.Now().Equal(start) {
			t.Errorf("tools %v, params %v, now %v", tools, params, turn.Now())
		}
		entries, err := turn.History()
		if err != nil || turn.HistoryCount() != 4 {
			t.Errorf("%d entries, %v", turn.HistoryCount(), err)
		}
		if entries[0].Message.Body != "old" || entries[1].Call.Name != "help" || !entries[2].Result.OK || entries[3].Note != "n" {
			t.Errorf("history %+v", entries)
		}
		return nil
	}), in)
	if out.Err != nil {
		t.Error(out.Err)
	}
}

func TestOpsOfTheHost(t *testing.T) {
	t.Parallel()
	out := skeptest.Run(turnFunc(func(turn *skep.Turn) error {
		turn.Log("priced", "item", "tea", "cents", 250, "err", skep.Denied, "odd")
		if v, err := turn.Random(); err != nil || len(v) != 32 {
			t.Errorf("Random %q, %v", v, err)
		}
		turn.Sleep(time.Second)
		if at, err := turn.WallTime(); err != nil || !at.Equal(turn.Now()) {
			t.Errorf("WallTime %v, %v", at, err)
		}
		if page, next, err := turn.HistoryAfter(0, 10); err != nil || len(page) != 0 || next != 0 {
			t.Errorf("HistoryAfter %v %v %v", page, next, err)
		}
		if err := turn.Call(999, map[string]string{"key": "a"}, nil); !errors.Is(err, skep.Unsupported) {
			t.Errorf("op 999: %v", err)
		}
		return turn.Call(skep.OpKVPut, func() {}, nil)
	}), skeptest.Input{})
	if out.Err == nil || !strings.HasPrefix(out.Err.Message, "kv.put: request:") {
		t.Errorf("a request that is no JSON: %v", out.Err)
	}
	want := `{"level":"info","message":"priced","fields":{"!last":"odd","cents":250,"err":"DENIED","item":"tea"}}`
	if string(out.Calls[0].Request) != want {
		t.Errorf("logged %s, want %s", out.Calls[0].Request, want)
	}
}

func TestAfterTheEndMailIsRefused(t *testing.T) {
	t.Parallel()
	out := skeptest.Run(turnFunc(func(turn *skep.Turn) error {
		if err := turn.AwaitMessage("x"); err != nil {
			return err
		}
		if err := turn.SendRequest("b", "s", "x"); !errors.Is(err, skep.Conflict) {
			t.Errorf("after await: %v", err)
		}
		if err := turn.TaskComplete("x"); !errors.Is(err, skep.Denied) {
			t.Errorf("completing without the right: %v", err)
		}
		if _, err := turn.Tool("discover_swarms", nil); !errors.Is(err, skep.NotFound) {
			t.Errorf("a tool the host has not: %v", err)
		}
		return nil
	}), skeptest.Input{})
	if out.Err != nil || len(out.Mail) != 1 {
		t.Errorf("%v, %+v", out.Err, out.Mail)
	}
}

func TestMessageRoundTrip(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 9, 30, 0, 123000000, time.UTC)
	agent := []skep.Address{{Type: skep.AddressAgent, Name: "b"}}
	for _, kind := range []skep.MessageType{skep.TypeRequest, skep.TypeResponse, skep.TypeBroadcast, skep.TypeInterrupt, skep.TypeBroadcastComplete} {
		in := skep.Message{ID: "i", Time: at, Type: kind, Task: "t", RefID: "r", Recipients: agent, Subject: "s", Body: "b",
			Sender: skep.Address{Type: skep.AddressUser, Name: "u"}, SenderSwarm: "w", Routing: json.RawMessage(`{"a":1}`)}
		raw, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var out skep.Message
		if err := json.Unmarshal(raw, &out); err != nil || !reflect.DeepEqual(in, out) {
			t.Errorf("%s: %+v, %v", raw, out, err)
		}
	}
	var m skep.Message
	for _, bad := range []string{`[]`, `{"timestamp":"yesterday"}`} {
		if json.Unmarshal([]byte(bad), &m) == nil {
			t.Errorf("%s was taken for a message", bad)
		}
	}
}

func TestNamesOfOpsAndCodes(t *testing.T) {
	t.Parallel()
	if op, ok := skep.OpByName("llm.chat"); !ok || op != skep.OpLLMChat || op.String() != "llm.chat" {
		t.Errorf("llm.chat is %v", op)
	}
	if _, ok := skep.OpByName("nothing"); ok || skep.Op(99).String() != "op 99" || skep.Code(99).String() != "CODE_99" {
		t.Error("unknown names are found")
	}
}

func TestRunWantsAnAgentOnce(t *testing.T) {
	mustPanic := func(what string, f func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s did not panic", what)
			}
		}()
		f()
	}
	agent := turnFunc(func(*skep.Turn) error { return nil })
	mustPanic("no version", func() { skep.Run(skep.Descriptor{Name: "a"}, agent) })
	mustPanic("no agent", func() { skep.Run(skep.Descriptor{Name: "a", Version: "1"}, nil) })
	skep.Run(skep.Descriptor{Name: "a", Version: "1"}, agent)
	mustPanic("twice", func() { skep.Run(skep.Descriptor{Name: "a", Version: "1"}, agent) })
}

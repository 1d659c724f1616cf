package main

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

var (
	other  = skep.Address{Type: skep.AddressAgent, Name: "other"}
	system = skep.Address{Type: skep.AddressSystem, Name: "hive"}
)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		body string
		want int // calls; -1 is no script
	}{
		{`[["help",{}]]`, 1},
		{` [ ["a",{"x":1}] , ["b",{}] ] ` + "\n", 2},
		{`[]`, 0},
		{``, -1},
		{`hello`, -1},
		{`null`, -1},
		{`{}`, -1},
		{`[1]`, -1},
		{`["help",{}]`, -1},
		{`[["help"]]`, -1},
		{`[["help",{},{}]]`, -1},
		{`[["help","x"]]`, -1},
		{`[["help",null]]`, -1},
		{`[["help",[]]]`, -1},
		{`[[1,{}]]`, -1},
		{`[null]`, -1},
		{`[["help",{}]] and more`, -1},
		{`[["help",{}]`, -1},
	}
	for _, tt := range tests {
		steps, ok := parse(tt.body)
		got := len(steps)
		if !ok {
			got = -1
		}
		if got != tt.want {
			t.Errorf("parse(%q) has %d calls, want %d", tt.body, got, tt.want)
		}
	}
}

func TestSubstitute(t *testing.T) {
	t.Parallel()
	texts := []string{"zero", `{{0}} "quoted"`, "two"}
	tests := []struct{ in, want string }{
		{`{"a":"{{0}}"}`, `{"a":"zero"}`},
		{`{"a":"x {{2}}{{0}} y"}`, `{"a":"x twozero y"}`},
		{`{"a":"{{1}}"}`, `{"a":"{{0}} \"quoted\""}`}, // never scanned again
		{`{"a":"{{3}} {{99999999999999999999}}"}`, `{"a":"{{3}} {{99999999999999999999}}"}`},
		{`{"a":"{{}} {{x}} {{-1}} {{ 0 }} {0}"}`, `{"a":"{{}} {{x}} {{-1}} {{ 0 }} {0}"}`},
		{`{"a":"{{{0}}}"}`, `{"a":"{zero}"}`},
		{`{"a":"{{0}"}`, `{"a":"{{0}"}`},
		{`{"a":"{\u007b0}}"}`, `{"a":"zero"}`}, // decoded strings count
		{`{"a":["{{0}}",{"b":"{{2}}"}],"n":12345678901234567890}`, `{"a":["zero",{"b":"two"}],"n":12345678901234567890}`},
		{`{"{{0}}":"{{0}}"}`, `{"{{0}}":"zero"}`}, // names stay
		{`{"a" : "b<\"{{0}}>" }`, `{"a" : "b<\"zero>" }`},
	}
	for _, tt := range tests {
		if got := string(substitute(json.RawMessage(tt.in), texts)); got != tt.want {
			t.Errorf("substitute(%s) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestResultText(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{`{"value":"v","body":"b"}`, "v"},
		{`{"id":"x","text":"SUCCESS: message sent"}`, "SUCCESS: message sent"},
		{`{"status":200,"body":"page"}`, "page"},
		{`{"data":"d","content":"c"}`, "d"},
		{`{"content":"c"}`, "c"},
		{`{"value":{"a":1},"text":"t"}`, "t"},
		{`{"value": 7, "x": "<>"}`, `{"value":7,"x":"<>"}`},
		{`{"time":"now"}`, `{"time":"now"}`},
		{`[1, 2]`, `[1,2]`},
		{``, ""},
	}
	for _, tt := range tests {
		if got := resultText(json.RawMessage(tt.in)); got != tt.want {
			t.Errorf("resultText(%s) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

// plainCase is a message that is no script, and the one call it leads to.
func TestPlainMessages(t *testing.T) {
	t.Parallel()
	message := func(kind skep.MessageType, from skep.Address) skep.Message {
		return skep.Message{Type: kind, Sender: from, Subject: "s", Body: "hello"}
	}
	tests := []struct {
		name     string
		message  skep.Message
		complete bool
		want     *skeptest.Mail
	}{
		{"system, can complete", message(skep.TypeResponse, system), true, &skeptest.Mail{Tool: "task_complete", Finish: "math got [s] hello"}},
		{"system broadcast, can complete", message(skep.TypeBroadcast, system), true, &skeptest.Mail{Tool: "task_complete", Finish: "math got [s] hello"}},
		{"system, cannot", message(skep.TypeResponse, system), false, nil},
		{"broadcast, can complete", message(skep.TypeBroadcast, other), true, &skeptest.Mail{Tool: "acknowledge_broadcast"}},
		{"broadcast", message(skep.TypeBroadcast, other), false, &skeptest.Mail{Tool: "acknowledge_broadcast"}},
		{"response, can complete", message(skep.TypeResponse, other), true, &skeptest.Mail{Tool: "task_complete", Finish: "math got [s] hello"}},
		{"request, can complete", message(skep.TypeRequest, other), true, &skeptest.Mail{Tool: "task_complete", Finish: "math got [s] hello"}},
		{"request", message(skep.TypeRequest, other), false, &skeptest.Mail{Tool: "send_response", Target: "other", Subject: "Re: s", Body: "echo: hello"}},
		{"interrupt", message(skep.TypeInterrupt, other), false, &skeptest.Mail{Tool: "send_response", Target: "other", Subject: "Re: s", Body: "echo: hello"}},
		{"response", message(skep.TypeResponse, other), false, nil},
		{"completion", message(skep.TypeBroadcastComplete, other), false, nil},
	}
	for _, tt := range tests {
		out := skeptest.Run(Script{}, skeptest.Input{Agent: "math", CanComplete: tt.complete, Message: tt.message})
		var want []skeptest.Mail
		if tt.want != nil {
			want = append(want, *tt.want)
		}
		if out.Err != nil || !reflect.DeepEqual(out.Mail, want) {
			t.Errorf("%s: %+v, %v; want %+v", tt.name, out.Mail, out.Err, want)
		}
		if wantLog := strings.HasPrefix(tt.name, "system, cannot"); (len(out.Logs) > 0) != wantLog {
			t.Errorf("%s: logged %q", tt.name, out.Logs)
		}
	}
}

func TestARefusedPlainAnswerFailsTheTurn(t *testing.T) {
	t.Parallel()
	out := skeptest.Run(Script{}, skeptest.Input{Message: skep.Message{Body: "hi"},
		Answer: func(skep.Op, json.RawMessage) (any, error) { return nil, skep.Errorf(skep.Denied, "no") }})
	if out.Err == nil || !errors.Is(out.Err, skep.Denied) {
		t.Errorf("ended with %v", out.Err)
	}
}

// runScript runs a script whose last call logs what the earlier ones said.
func runScript(t *testing.T, in skeptest.Input, script string) skeptest.Outcome {
	t.Helper()
	in.Message.Body = script
	out := skeptest.Run(Script{}, in)
	if out.Err != nil {
		t.Fatalf("%s: %v", script, out.Err)
	}
	return out
}

func TestScriptCallsInOrder(t *testing.T) {
	t.Parallel()
	out := runScript(t, skeptest.Input{}, `[["send_request",{"target":"math","subject":"s","body":"hello"}],["await_message",{}]]`)
	if len(out.Mail) != 2 || out.Mail[0].Target != "math" || out.Mail[1].Tool != "await_message" {
		t.Errorf("mail %+v", out.Mail)
	}
}

func TestScriptRunsWhateverBringsIt(t *testing.T) {
	t.Parallel()
	for _, kind := range []skep.MessageType{skep.TypeRequest, skep.TypeResponse, skep.TypeBroadcast, skep.TypeInterrupt} {
		out := runScript(t, skeptest.Input{CanComplete: true, Message: skep.Message{Type: kind, Sender: other}}, `[["help",{}]]`)
		if len(out.Mail) != 1 || out.Mail[0].Tool != "help" {
			t.Errorf("%s: %+v", kind, out.Mail)
		}
	}
	const body = `[["help",{}]]`
	out := runScript(t, skeptest.Input{Agent: "a", CanComplete: true, Message: skep.Message{Sender: system, Subject: "s"}}, body)
	if len(out.Mail) != 1 || out.Mail[0].Finish != "a got [s] "+body {
		t.Errorf("from the system: %+v", out.Mail)
	}
}

func TestScriptErrorsAreTextsAndDoNotStopIt(t *testing.T) {
	t.Parallel()
	in := skeptest.Input{CanComplete: true, Answer: func(op skep.Op, _ json.RawMessage) (any, error) {
		if op == skep.OpSecretExists {
			return nil, skep.Errorf(skep.Denied, "not granted")
		}
		return nil, nil
	}}
	out := runScript(t, in, `[["blob.get",{"sha256":"`+strings.Repeat("a", 64)+`"}],["secret.exists",{"name":"x"}],["no such thing",{}],["sleep",{}],
		["task_complete",{"finish_message":"{{0}}|{{1}}|{{2}}|{{3}}"}]]`)
	want := `ERROR NOT_FOUND: there is no blob ` + strings.Repeat("a", 64) + `|ERROR DENIED: not granted|` +
		`ERROR UNSUPPORTED: this host has no "no such thing"|ERROR INVALID: sleep: ms must be a number from 0`
	if len(out.Mail) != 1 || out.Mail[0].Finish != want {
		t.Errorf("finished with %+v\nwant %q", out.Mail, want)
	}
}

func TestScriptPassesArgumentsAsTheyAre(t *testing.T) {
	t.Parallel()
	out := runScript(t, skeptest.Input{}, `[["kv.put",{"key":"k","value":12345678901234567890}],["kv.cas",{"key":"k","expect":null,"value":1e3}]]`)
	var got []string
	for _, c := range out.Calls {
		if c.Op != skep.OpLog {
			got = append(got, c.Op.String()+" "+string(c.Request))
		}
	}
	want := []string{`kv.put {"key":"k","value":12345678901234567890}`, `kv.cas {"key":"k","expect":null,"value":1e3}`}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("called %q, want %q", got, want)
	}
}

func TestScriptPutsBlobsAndMeasures(t *testing.T) {
	t.Parallel()
	out := runScript(t, skeptest.Input{CanComplete: true}, `[["blob.put",{"data":"dGVhCg=="}],["blob.get",{"sha256":"{{0}}"}],
		["metric",{"name":"orders","value":2}],["span",{"name":"a"}],["span",{"id":1}],["task_complete",{"finish_message":"{{1}} {{2}} {{4}}"}]]`)
	if len(out.Mail) != 1 || out.Mail[0].Finish != `dGVhCg== {} {"id":1}` || len(out.Metrics) != 1 || len(out.Spans) != 1 || !out.Spans[0].Ended {
		t.Errorf("finished with %+v, metrics %+v, spans %+v", out.Mail, out.Metrics, out.Spans)
	}
}

func TestScriptEmits(t *testing.T) {
	t.Parallel()
	in := skeptest.Input{CanComplete: true, Answer: func(op skep.Op, req json.RawMessage) (any, error) {
		if op != skep.OpEmit {
			return nil, nil
		}
		return json.RawMessage(`{"status":"busy"}`), nil
	}}
	out := runScript(t, in, `[["emit",{"progress":{"text":"half","fraction":0.5}}],["emit",{"chunk":"x"}],["task_complete",{"finish_message":"{{1}}"}]]`)
	if len(out.Mail) != 1 || out.Mail[0].Finish != `{"status":"busy"}` {
		t.Errorf("finished with %+v", out.Mail)
	}
	if len(out.Calls) < 2 || string(out.Calls[0].Request) != `{"progress":{"text":"half","fraction":0.5}}` || string(out.Calls[1].Request) != `{"chunk":"x"}` {
		t.Errorf("called %+v", out.Calls)
	}
}

func TestScriptActions(t *testing.T) {
	t.Parallel()
	var asked []string
	in := skeptest.Input{Tools: []string{"log"}, Answer: func(op skep.Op, req json.RawMessage) (any, error) {
		if op != skep.OpAction {
			return nil, nil
		}
		asked = append(asked, string(req))
		return map[string]any{"content": "done"}, nil
	}}
	// An action goes before a probe of the same name; an unknown name of the
	// right form is left to the host.
	runScript(t, in, `[["log",{"x":1}],["other_action",{}]]`)
	want := []string{`{"args":{"x":1},"name":"log"}`, `{"args":{},"name":"other_action"}`}
	if !reflect.DeepEqual(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

func TestNestedScriptIsFilledByTheOuterOne(t *testing.T) {
	t.Parallel()
	out := runScript(t, skeptest.Input{}, `[["random",{}],["send_request",{"target":"b","subject":"s","body":"[[\"log\",{\"message\":\"{{0}} {{1}}\"}]]"}]]`)
	want := `[["log",{"message":"00000000000000000000000000000001 {{1}}"}]]`
	if len(out.Mail) != 1 || out.Mail[0].Body != want {
		t.Errorf("sent %+v, want %s", out.Mail, want)
	}
}

func TestProbes(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ticks := 0
	in := skeptest.Input{Start: start, CanComplete: true, Answer: func(op skep.Op, _ json.RawMessage) (any, error) {
		if op != skep.OpClockNow {
			return nil, nil
		}
		ticks++
		return map[string]string{"time": start.Add(time.Duration(ticks) * time.Second).Format(time.RFC3339Nano)}, nil
	}}
	out := runScript(t, in, `[["now",{}],["sleep",{"ms":1500}],["now",{}],["random",{}],["alloc",{"mib":1}],["log",{"message":"hello"}],
		["burn",{"ms":2500}],["clock.now",{}],["task_complete",{"finish_message":"{{0}}|{{1}}|{{2}}|{{3}}|{{4}}|{{5}}|{{6}}|{{7}}"}]]`)
	want := `{"time":"2026-11-20T12:00:00.000000+00:00"}|slept 1.5s|{"time":"2026-11-20T12:00:01.500000+00:00"}|` +
		`00000000000000000000000000000001|allocated 1 MiB|logged|burned 2.5s|{"time":"2026-11-20T12:00:05Z"}`
	if len(out.Mail) != 1 || out.Mail[0].Finish != want {
		t.Errorf("finished with %+v\nwant %q", out.Mail, want)
	}
	if len(out.Logs) != 1 || out.Logs[0] != "hello" || !out.End.Equal(start.Add(1500*time.Millisecond)) {
		t.Errorf("logged %q, ended at %v", out.Logs, out.End)
	}
}

func TestProbesRefuseBadArguments(t *testing.T) {
	t.Parallel()
	for _, call := range []string{`["sleep",{"ms":-1}]`, `["sleep",{"ms":"x"}]`, `["burn",{}]`, `["alloc",{}]`, `["alloc",{"mib":-1}]`,
		`["alloc",{"mib":5000}]`, `["log",{}]`, `["log",{"message":7}]`} {
		out := runScript(t, skeptest.Input{CanComplete: true}, `[`+call+`,["task_complete",{"finish_message":"{{0}}"}]]`)
		if len(out.Mail) != 1 || !strings.HasPrefix(out.Mail[0].Finish, "ERROR INVALID: ") {
			t.Errorf("%s: %+v", call, out.Mail)
		}
	}
}

func FuzzSubstitute(f *testing.F) {
	f.Add(`{"a":"{{0}}\\{{1}}"}`, "x")
	f.Fuzz(func(t *testing.T, args, text string) {
		steps, ok := parse(`[["x",` + args + `]]`)
		if !ok || len(steps) != 1 {
			return
		}
		if out := substitute(steps[0].args, []string{text, "\u2028\""}); !json.Valid(out) {
			t.Errorf("substitute(%s) = %s", args, out)
		}
	})
}

package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

const question = `What is (17+4)*3, and how many words and vowels are in "the bees are busy in the skep"?`

func TestSplitQuestion(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want []string // kind and body
	}{
		{question, []string{"arithmetic (17+4)*3", `text how many words and vowels are in "the bees are busy in the skep"`}},
		{"What is 2 plus 2?", []string{"arithmetic 2 + 2"}},
		{"2+2", []string{"arithmetic 2+2"}},
		{"1/0", []string{"arithmetic 1/0"}},
		{"Compute 3 × -4, then 10 ÷ 4.", []string{"arithmetic 3 * -4", "arithmetic 10 / 4"}},
		{"(2+3", []string{"arithmetic (2+3"}},
		{"-2^2?", []string{"arithmetic -2^2"}},
		{`How many letters does “Größe” have?`, []string{`text How many letters does "Größe"`}},
		{`"bees"`, []string{`text what can be counted in "bees"`}},
		{`words in "1+1", vowels in "2+2"`, []string{`text words in "1+1"`, `text vowels in "2+2"`}},
		{"How many words are in: bees fly 3 high?", []string{"text How many words are in: bees fly 3 high?"}},
		{"Note: 2+2", []string{"arithmetic 2+2"}},
		{"Hello", nil},
		{"I have 3 bees (two of them 2nd-hand), 50% busy.", nil},
		{`an "unclosed quote`, nil},
		{"", nil},
	}
	for _, tt := range tests {
		var got []string
		for _, p := range splitQuestion(tt.in) {
			got = append(got, p.Kind+" "+p.Body)
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("splitQuestion(%q)\n got %q\nwant %q", tt.in, got, tt.want)
		}
	}
}

func FuzzSplitQuestion(f *testing.F) {
	f.Add(question)
	f.Fuzz(func(t *testing.T, in string) {
		for _, p := range splitQuestion(in) {
			if p.Body == "" {
				t.Errorf("an empty part of %q", in)
			}
		}
	})
}

// talk plays turns of one task and carries the state along.
type talk struct {
	t     *testing.T
	state json.RawMessage
	deny  string // an agent that may not be written to
}

func (c *talk) turn(m skep.Message) skeptest.Outcome {
	c.t.Helper()
	out := skeptest.Run(Supervisor{}, skeptest.Input{
		Agent: "supervisor", CanComplete: true, CommTargets: []string{"calculator", "analyst"}, Message: m, State: c.state,
		Answer: func(op skep.Op, req json.RawMessage) (any, error) {
			if c.deny != "" && strings.Contains(string(req), `"target":"`+c.deny+`"`) {
				return nil, skep.Errorf(skep.Denied, "%s is no comm target", c.deny)
			}
			return nil, nil
		},
	})
	if out.Err != nil {
		c.t.Fatal(out.Err)
	}
	c.state = out.State
	return out
}

func (c *talk) ask(body string) skeptest.Outcome { return c.turn(skep.Message{Body: body}) }

func (c *talk) reply(from, subject, body string) skeptest.Outcome {
	return c.turn(skep.Message{Type: skep.TypeResponse, Subject: "Re: " + subject, Body: body,
		Sender: skep.Address{Type: skep.AddressAgent, Name: from}})
}

func (c *talk) system(subject, body string) skeptest.Outcome {
	return c.turn(skep.Message{Type: skep.TypeResponse, Subject: subject, Body: body,
		Sender: skep.Address{Type: skep.AddressSystem, Name: "hive"}})
}

func tools(out skeptest.Outcome) string {
	var list []string
	for _, m := range out.Mail {
		list = append(list, strings.TrimSpace(m.Tool+" "+m.Target))
	}
	return strings.Join(list, ", ")
}

// finished returns the answer a turn completed the task with.
func finished(t *testing.T, out skeptest.Outcome) string {
	t.Helper()
	if len(out.Mail) == 0 || out.Mail[len(out.Mail)-1].Tool != "task_complete" {
		t.Fatalf("not completed: %s", tools(out))
	}
	return out.Mail[len(out.Mail)-1].Finish
}

func TestQuestionOfTwoParts(t *testing.T) {
	t.Parallel()
	c := &talk{t: t}
	out := c.ask(question)
	if got := tools(out); got != "send_request calculator, send_request analyst, await_message" {
		t.Fatalf("first turn: %s", got)
	}
	first, second := out.Mail[0], out.Mail[1]
	if first.Subject != "Part 1: arithmetic" || first.Body != "(17+4)*3" || second.Subject != "Part 2: text" {
		t.Errorf("asked %+v and %+v", first, second)
	}
	if got := tools(c.reply("analyst", "Part 2: text", `"the bees are busy in the skep" has 7 words and 9 vowels`)); got != "await_message" {
		t.Fatalf("second turn: %s", got)
	}
	got := finished(t, c.reply("calculator", "Part 1: arithmetic", "63"))
	if want := `(17+4)*3 = 63, and "the bees are busy in the skep" has 7 words and 9 vowels.`; got != want {
		t.Errorf("answered %q, want %q", got, want)
	}

	// A second post on the same task starts afresh, with new numbers.
	if out := c.ask("What is 1/3?"); tools(out) != "send_request calculator, await_message" || out.Mail[0].Subject != "Part 3: arithmetic" {
		t.Fatalf("second question: %+v", out.Mail)
	}
	if got := finished(t, c.reply("calculator", "Part 3: arithmetic", "≈ 0.3333333333")); got != "1/3 ≈ 0.3333333333." {
		t.Errorf("answered %q", got)
	}
}

func TestErrorsReachTheUser(t *testing.T) {
	t.Parallel()
	c := &talk{t: t}
	c.ask("What is 1/0?")
	if got := finished(t, c.reply("calculator", "Part 1: arithmetic", "error: division by zero")); got != "I could not work out 1/0: division by zero." {
		t.Errorf("answered %q", got)
	}

	c = &talk{t: t}
	c.ask(question)
	c.reply("analyst", "Part 2: text", `"x" has 1 word`)
	got := finished(t, c.system("::agent_error::", "agent calculator failed: trap\nmore"))
	if want := `I could not work out (17+4)*3: calculator gave no answer (agent calculator failed: trap), and "x" has 1 word.`; got != want {
		t.Errorf("answered %q, want %q", got, want)
	}

	c = &talk{t: t, deny: "calculator"}
	if got := finished(t, c.ask("What is 1+1?")); !strings.Contains(got, "calculator cannot be asked") {
		t.Errorf("answered %q", got)
	}
	c = &talk{t: t, deny: "calculator"}
	if got := tools(c.ask(question)); got != "send_request analyst, await_message" {
		t.Errorf("with one part refused: %s", got)
	}
	// The host says it again as mail; the other part is still to come.
	if got := tools(c.system("::invalid_recipient::", "calculator is no comm target")); got != "await_message" {
		t.Errorf("after the host's mail about it: %s", got)
	}
}

func TestWhatItCannotDo(t *testing.T) {
	t.Parallel()
	c := &talk{t: t}
	if got := finished(t, c.ask("Sing a song")); got != helpText {
		t.Errorf("answered %q", got)
	}
}

func TestStrayMail(t *testing.T) {
	t.Parallel()
	c := &talk{t: t}
	if got := tools(c.reply("calculator", "Part 9: arithmetic", "63")); got != "" {
		t.Errorf("an answer to nothing: %s", got)
	}
	c.ask(question)
	if got := tools(c.reply("analyst", "Part 1: arithmetic", "4711")); got != "await_message" {
		t.Errorf("an answer by the wrong agent: %s", got)
	}
	if got := tools(c.ask("What is 2+2?")); got != "send_request calculator, await_message" {
		t.Errorf("a post while waiting: %s", got)
	}
	if got := tools(c.turn(skep.Message{Type: skep.TypeBroadcast, Sender: skep.Address{Type: skep.AddressAgent, Name: "analyst"}})); got != "acknowledge_broadcast" {
		t.Errorf("a broadcast: %s", got)
	}
	if got := tools(c.system("::help::", "text")); got != "await_message" {
		t.Errorf("a system message while waiting: %s", got)
	}
	if got := finished(t, c.system("::maximum_steps_reached::", "enough")); !strings.Contains(got, "the task ran out of messages") {
		t.Errorf("out of steps: %q", got)
	}
	if got := finished(t, c.system("::maximum_steps_reached::", "enough")); !strings.Contains(got, "ran out of steps") {
		t.Errorf("out of steps with nothing open: %q", got)
	}
	if got := tools(c.system("::action_complete::", "x")); got != "" {
		t.Errorf("a system message with nothing open: %s", got)
	}
}

func TestParamsNameTheAgents(t *testing.T) {
	t.Parallel()
	out := skeptest.Run(Supervisor{}, skeptest.Input{CanComplete: true, Params: map[string]string{"calculator": "abacus@depot"},
		Message: skep.Message{Body: "1+1"}})
	if len(out.Mail) == 0 || out.Mail[0].Target != "abacus@depot" {
		t.Errorf("asked %+v", out.Mail)
	}
	out = skeptest.Run(Supervisor{}, skeptest.Input{CanComplete: true, Params: []int{1}, Message: skep.Message{Body: "1+1"}})
	if out.Err == nil {
		t.Error("params of the wrong shape were accepted")
	}
}

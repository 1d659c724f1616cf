// Command conform is the conformance guest of the Go SDK, as a module and as a
// program. spec/conformance/GUEST.md describes it.
package main

import (
	"encoding/json"
	"errors"
	"fmt"

	skep "skep/sdk/go"
)

// conform counts what a package variable must not keep between turns.
type conform struct {
	turns, warmed int
	spans         []skep.Span
}

var agent = skep.Run(skep.Descriptor{
	Name: "conform", Version: "1.0.0",
	Description: "Does what the message says, the same in every language.",
	Agents:      []skep.AgentInfo{{Name: "conform", Description: "Send it a command list."}},
	Actions: []skep.ActionInfo{{
		Name: "echo", Description: "Answers with what it was given.", Parameters: json.RawMessage(`{"type":"object"}`),
	}, {
		Name: "run", Description: "Answers with the notes of a command list.", Parameters: json.RawMessage(`{"type":"object"}`),
	}},
}, &conform{})

// Warm counts.
func (c *conform) Warm() error {
	c.warmed++
	return nil
}

// Action answers with what it was given, or runs a command list.
func (c *conform) Action(call *skep.ActionCall) (any, error) {
	if call.Name == "run" {
		c = own(c)
		var args struct{ Commands json.RawMessage }
		_ = json.Unmarshal(call.Args, &args) // what is none is no command list either
		return c.notes(call.Host(), args.Commands)
	}
	return struct {
		Action string          `json:"action"`
		Args   json.RawMessage `json:"args"`
	}{call.Name, call.Args}, nil
}

// Turn runs the command list in the message's body.
func (c *conform) Turn(t *skep.Turn) error {
	c = own(c)
	c.turns++
	notes, err := c.notes(t, []byte(t.Message.Body))
	for _, note := range notes {
		t.Note(note)
	}
	return err
}

// notes runs a command list.
func (c *conform) notes(t *skep.Turn, body []byte) ([]string, error) {
	list, ok := parse(body)
	if !ok {
		return nil, skep.Errorf(skep.Invalid, "no command list")
	}
	notes := []string{}
	for _, cmd := range list {
		note, err := c.run(t, cmd)
		if err != nil {
			return nil, err
		}
		notes = append(notes, note)
	}
	return notes, nil
}

// command is one pair of the list.
type command struct {
	name string
	args args
	raw  json.RawMessage // the arguments as they came
}

func parse(body []byte) ([]command, bool) {
	var pairs []json.RawMessage
	if json.Unmarshal(body, &pairs) != nil || pairs == nil {
		return nil, false
	}
	list := make([]command, len(pairs))
	for i, raw := range pairs {
		var pair []json.RawMessage
		if json.Unmarshal(raw, &pair) != nil || len(pair) != 2 || pair[0][0] != '"' || pair[1][0] != '{' {
			return nil, false
		}
		c := &list[i]
		c.raw = pair[1]
		if json.Unmarshal(pair[0], &c.name) != nil {
			return nil, false
		}
		if json.Unmarshal(pair[1], &c.args) != nil {
			return nil, false
		}
	}
	return list, true
}

// args are the arguments of all commands together.
type args struct {
	Text     string            `json:"text"`
	Value    json.RawMessage   `json:"value"`
	Page     uint32            `json:"page"`
	Cap      uint32            `json:"cap"`
	Op       skep.Op           `json:"op"`
	Request  json.RawMessage   `json:"request"`
	Requests []json.RawMessage `json:"requests"`
	MS       int64             `json:"ms"`
	Timeout  int32             `json:"timeout"`
	Level    skep.Level        `json:"level"`
	Message  string            `json:"message"`
	After    int64             `json:"after"`
	Limit    int               `json:"limit"`
	Target   string            `json:"target"`
	Targets  []string          `json:"targets"`
	Subject  string            `json:"subject"`
	Body     string            `json:"body"`
	Note     string            `json:"note"`
	Reason   string            `json:"reason"`
	Finish   string            `json:"finish_message"`
	Name     string            `json:"name"`
	Args     json.RawMessage   `json:"args"`
	Code     skep.Code         `json:"code"`
	Fraction *float64          `json:"fraction"`

	Kind       string            `json:"kind"`
	Labels     skep.Labels       `json:"labels"`
	Attributes map[string]string `json:"attributes"`
	ID         int64             `json:"id"`
	Error      string            `json:"error"`
	SHA256     string            `json:"sha256"`
}

// refusal is what a note says of an error.
func refusal(err error) string {
	var e *skep.Error
	if !errors.As(err, &e) {
		return "ERROR INTERNAL - - 0: " + err.Error()
	}
	reason := e.Reason
	if reason == "" {
		reason = "-"
	}
	return fmt.Sprintf("ERROR %s %s %s %d: %s", e.Code, e.Op, reason, e.RetryAfter.Milliseconds(), e.Message)
}

// said is ok, or why not.
func said(err error) string {
	if err != nil {
		return refusal(err)
	}
	return "ok"
}

// text is a text, or why there is none.
func text(s string, err error) string {
	if err != nil {
		return refusal(err)
	}
	return s
}

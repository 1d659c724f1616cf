package skep

import (
	"bytes"
	"encoding/json"

	"skep/sdk/go/internal/abi"
)

// Reply is the host's answer to a MAIL tool.
type Reply struct {
	// ID is the id of the message the tool made, if it made one.
	ID   string
	Text string
}

// Tool calls a MAIL tool by name with the arguments its schema asks for. The
// typed methods below cover the tools every agent knows.
func (t *Turn) Tool(name string, args any) (Reply, error) {
	raw, err := encode(args)
	if err != nil {
		return Reply{}, err
	}
	var rsp abi.MailResponse
	if err := t.Call(OpMail, abi.MailRequest{Tool: name, Args: raw}, &rsp); err != nil {
		return Reply{}, err
	}
	return Reply(rsp), nil
}

// letter is the arguments of the tools that write to one address.
type letter struct {
	Target  string `json:"target"`
	Subject string `json:"subject"`
	Body    string `json:"body"`
}

// SendRequest asks another agent. The answer comes as a message of a later
// turn.
func (t *Turn) SendRequest(target, subject, body string) error {
	_, err := t.Tool("send_request", letter{target, subject, body})
	return err
}

// SendResponse answers an agent.
func (t *Turn) SendResponse(target, subject, body string) error {
	_, err := t.Tool("send_response", letter{target, subject, body})
	return err
}

// SendInterrupt writes to an agent ahead of everything that waits for it.
func (t *Turn) SendInterrupt(target, subject, body string) error {
	_, err := t.Tool("send_interrupt", letter{target, subject, body})
	return err
}

// SendBroadcast writes to several agents, or with the target "all" to every
// local agent but this one.
func (t *Turn) SendBroadcast(targets []string, subject, body string) error {
	_, err := t.Tool("send_broadcast", struct {
		Targets []string `json:"targets"`
		Subject string   `json:"subject"`
		Body    string   `json:"body"`
	}{targets, subject, body})
	return err
}

// AcknowledgeBroadcast takes note of the broadcast in hand, with an optional
// remark.
func (t *Turn) AcknowledgeBroadcast(note string) error {
	_, err := t.Tool("acknowledge_broadcast", struct {
		Note *string `json:"note"`
	}{optional(note)})
	return err
}

// IgnoreBroadcast leaves the broadcast in hand, with an optional reason.
func (t *Turn) IgnoreBroadcast(reason string) error {
	_, err := t.Tool("ignore_broadcast", struct {
		Reason *string `json:"reason"`
	}{optional(reason)})
	return err
}

// AwaitMessage ends the agent's part until another message arrives. It fails
// when nothing can arrive any more. Later MAIL calls of the turn return
// [Conflict].
func (t *Turn) AwaitMessage(reason string) error {
	_, err := t.Tool("await_message", struct {
		Reason *string `json:"reason"`
	}{optional(reason)})
	return err
}

// TaskComplete answers the user and ends the task. Later MAIL calls of the
// turn return [Conflict].
func (t *Turn) TaskComplete(finish string) error {
	_, err := t.Tool("task_complete", struct {
		Finish string `json:"finish_message"`
	}{finish})
	return err
}

// HelpTopics selects what [Turn.Help] tells.
type HelpTopics struct {
	Summary  bool     `json:"get_summary"`
	Identity bool     `json:"get_identity"`
	Tools    []string `json:"get_tool_help"`
	Protocol bool     `json:"get_full_protocol"`
}

// Help returns the host's own words about MAIL and this agent.
func (t *Turn) Help(topics HelpTopics) (string, error) {
	if topics.Tools == nil {
		topics.Tools = []string{}
	}
	reply, err := t.Tool("help", topics)
	return reply.Text, err
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// encode renders a request; bytes and nil pass as they are.
func encode(v any) (json.RawMessage, error) {
	switch v := v.(type) {
	case nil:
		return json.RawMessage("{}"), nil
	case json.RawMessage:
		return v, nil
	case []byte:
		return v, nil
	}
	return marshal(v)
}

// marshal is json.Marshal without the escapes for HTML.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // people read these in histories
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

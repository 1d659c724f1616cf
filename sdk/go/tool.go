package skep

import (
	"bytes"
	"encoding/json"
	"fmt"

	"skep/sdk/go/internal/wire"
)

// Reply is the host's answer to a MAIL tool.
type Reply struct {
	// ID is the id of the message the tool made, if it made one.
	ID string
	// RequestID is the request_id of a request: the response to it has it, too.
	RequestID string
	Text      string
}

// Tool calls a MAIL tool by name with the arguments its schema asks for. The
// typed methods below cover the tools every agent knows.
func (t *Turn) Tool(name string, args any) (Reply, error) {
	raw, err := encode(args)
	if err != nil {
		return Reply{}, err
	}
	if !json.Valid(raw) {
		return Reply{}, Errorf(Invalid, "%s: args are no JSON", name)
	}
	return t.mail(name, raw)
}

// mail calls a tool with arguments that are JSON.
func (t *Turn) mail(name string, args []byte) (Reply, error) {
	req := append(wire.AppendText([]byte(`{"tool":`), name), `,"args":`...)
	req = append(append(req, args...), '}')
	body, err := t.perform(OpMail, req)
	if err != nil {
		return Reply{}, err
	}
	var r Reply
	if err := wire.Object(body, wire.Fields{{"id", &r.ID}, {"request_id", &r.RequestID}, {"text", &r.Text}}); err != nil {
		return Reply{}, fmt.Errorf("%s: answer: %w", OpMail, err)
	}
	return r, nil
}

// write calls a tool that writes to one address.
func (t *Turn) write(tool, target, subject, body string) (Reply, error) {
	return t.mail(tool, wire.Texts("target", target, "subject", subject, "body", body))
}

// SendRequest asks another agent. The answer comes as a message of a later
// turn.
func (t *Turn) SendRequest(target, subject, body string) error {
	_, err := t.write("send_request", target, subject, body)
	return err
}

// Ask is [Turn.SendRequest] that returns the request's id. The answer has it in
// [Message.RefID], and so has the host's report that there will be none. A host that
// does not give it leaves it empty.
func (t *Turn) Ask(target, subject, body string) (string, error) {
	reply, err := t.write("send_request", target, subject, body)
	return reply.RequestID, err
}

// SendResponse answers an agent.
func (t *Turn) SendResponse(target, subject, body string) error {
	_, err := t.write("send_response", target, subject, body)
	return err
}

// SendInterrupt writes to an agent ahead of everything that waits for it.
func (t *Turn) SendInterrupt(target, subject, body string) error {
	_, err := t.write("send_interrupt", target, subject, body)
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
	return t.remark("acknowledge_broadcast", "note", note)
}

// IgnoreBroadcast leaves the broadcast in hand, with an optional reason.
func (t *Turn) IgnoreBroadcast(reason string) error {
	return t.remark("ignore_broadcast", "reason", reason)
}

// AwaitMessage ends the agent's part until another message arrives. It fails
// when nothing can arrive any more. Later MAIL calls of the turn return
// [Conflict].
func (t *Turn) AwaitMessage(reason string) error {
	return t.remark("await_message", "reason", reason)
}

// TaskComplete answers the user and ends the task. Later MAIL calls of the
// turn return [Conflict].
func (t *Turn) TaskComplete(finish string) error {
	_, err := t.mail("task_complete", wire.Texts("finish_message", finish))
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

// remark calls a tool whose only argument is optional.
func (t *Turn) remark(tool, name, text string) error {
	args := wire.Texts(name, text)
	if text == "" {
		args = []byte(`{"` + name + `":null}`)
	}
	_, err := t.mail(tool, args)
	return err
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

package rest

import (
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// conversationItem is one element of the input of POST /responses.
type conversationItem struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Call    string          `json:"call_id"`
	Output  json.RawMessage `json:"output"`
}

// postResponses is POST /responses: the end of a conversation becomes a post, and
// the answer a response object
// (https://platform.openai.com/docs/api-reference/responses/object). The body is
// a JSON string with the document, because clients of this route decode it so.
func (c *call) postResponses() error {
	o, err := c.bodyObject()
	if err != nil {
		return err
	}
	p, err := readResponsesPost(o)
	if err != nil {
		return err
	}
	task, answer, err := c.submitAndWait(p.Post)
	if err != nil {
		return err
	}
	return c.reply(string(encode(c.responseObject(task.Task, answer))))
}

// responsesFields are the members of the body with their types.
var responsesFields = []parameter{
	{"input", "list", false}, {"tools", "list", false}, {"instructions", "str", true},
	{"previous_response_id", "str", true}, {"parallel_tool_calls", "bool", true}, {"kwargs", "dict", true},
}

// readResponsesPost reads the body. It checks instructions and tools and ignores
// them: an agent has the tools that it is granted.
func readResponsesPost(o *object) (p post, err error) {
	if err := o.checkParameters(responsesFields); err != nil {
		return p, err
	}
	p.Subject, p.Type = "New Message", mail.Request
	if p.Task, err = o.str("previous_response_id"); err != nil {
		return p, err
	}
	p.MustExist = p.Task != ""
	kw, err := o.object("kwargs")
	if err != nil {
		return p, err
	}
	if err := p.readKwargs(kw); err != nil {
		return p, err
	}
	input, _ := o.get("input")
	return p, p.readConversation(input)
}

// readConversation reads what follows the last item of the assistant: results of
// the calls that it waits for, or the text of a message.
func (p *post) readConversation(raw json.RawMessage) error {
	var items []conversationItem
	if json.Unmarshal(raw, &items) != nil {
		return badRequest("parameter 'input' must be a list of objects")
	}
	from := len(items)
	for from > 0 && items[from-1].Role != "assistant" && items[from-1].Type != "function_call" {
		from--
	}
	items = items[from:]
	if n := len(items); n > 0 && items[n-1].Type == "function_call_output" {
		return p.readOutputs(items)
	}
	var texts []string
	for _, it := range items {
		if text := itemText(it.Content); text != "" {
			texts = append(texts, text)
		}
	}
	if p.Body = strings.Join(texts, "\n"); p.Body == "" {
		return badRequest("no message provided")
	}
	return nil
}

// readOutputs resumes the paused task with the results at the end of the input.
func (p *post) readOutputs(items []conversationItem) error {
	if p.Task == "" {
		return badRequest("parameter 'previous_response_id' is required")
	}
	p.Results = &swarm.Results{}
	for i := len(items) - 1; i >= 0 && items[i].Type == "function_call_output"; i-- {
		if items[i].Call == "" {
			return badRequest("parameter 'input' must have a call_id in each function_call_output")
		}
		p.Results.Each = append(p.Results.Each, swarm.CallResult{Call: items[i].Call, Content: itemText(items[i].Output)})
	}
	return nil
}

// itemText returns the text of a content: a string, or the texts of its parts.
func itemText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n")
}

type responseObject struct {
	ID      string            `json:"id"`
	Object  string            `json:"object"`
	Created int64             `json:"created_at"`
	Status  string            `json:"status"`
	Model   string            `json:"model"`
	Output  []json.RawMessage `json:"output"`
	Tools   []any             `json:"tools"`
	Choice  string            `json:"tool_choice"`
	Several bool              `json:"parallel_tool_calls"`
}

// responseObject returns the task's answer: one message, or the calls that a
// paused task waits for, which the answer already holds in this form.
func (c *call) responseObject(task string, a swarm.Answer) responseObject {
	r := responseObject{
		ID: task, Object: "response", Created: c.h.opt.Now().Unix(), Status: "completed", Model: c.h.opt.Swarm,
		Tools: []any{}, Choice: "auto", Several: true,
	}
	if a.State == swarm.StatePaused && json.Unmarshal([]byte(a.Body), &r.Output) == nil {
		return r
	}
	r.Output = []json.RawMessage{encode(map[string]any{
		"type": "message", "id": "msg_" + uuid.NewString(), "role": "assistant", "status": "completed",
		"content": []any{map[string]any{"type": "output_text", "text": a.Body, "annotations": []any{}}},
	})}
	return r
}

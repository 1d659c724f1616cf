package rest

import (
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// item is one element of a conversation as POST /responses takes it.
type item struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Call    string          `json:"call_id"`
	Output  json.RawMessage `json:"output"`
}

// postResponses is POST /responses: the end of a conversation becomes a post,
// the answer an object of the same family. Its body is a JSON string that holds
// the document: that is what clients of this route decode.
func (c *call) postResponses() error {
	p, err := parseResponses(c.body, c.h.opt.MaxDepth)
	if err != nil {
		return err
	}
	p.Principal, p.Swarm, p.Door, p.Trace = c.principal(), c.h.opt.Swarm, door, trace(c.r.Header)
	receipt, err := c.h.rt.Submit(c.ctx(), p.Post)
	if err != nil {
		return err
	}
	c.w.Header().Set(taskHeader, headerText(receipt.Task.Task))
	answer, err := c.held(c.ctx(), receipt)
	if err != nil {
		return waited(err)
	}
	c.w.Header().Set(finishHeader, answer.Subject)
	return c.reply(string(encode(c.responseObject(receipt.Task.Task, answer))))
}

// responsesFields are what the body may have, with their types.
var responsesFields = []parameter{
	{"input", "list", false}, {"tools", "list", false}, {"instructions", "str", true},
	{"previous_response_id", "str", true}, {"parallel_tool_calls", "bool", true}, {"kwargs", "dict", true},
}

// parseResponses reads the body (contract 1.3). instructions, tools and the like
// are looked at and have no effect: an agent has the tools it is granted.
func parseResponses(body []byte, depth int) (p post, err error) {
	o, err := parseObject(body, depth)
	if err != nil {
		return p, err
	}
	if err := o.fits(responsesFields); err != nil {
		return p, err
	}
	p.Subject, p.Type = "New Message", mail.Request
	if p.Task, err = o.text("previous_response_id"); err != nil {
		return p, err
	}
	p.MustExist = p.Task != ""
	kw, err := o.object("kwargs")
	if err != nil {
		return p, err
	}
	if err := p.kwargs(kw); err != nil {
		return p, err
	}
	return p, p.conversation(o["input"])
}

// conversation takes what came after the last word of the assistant: results of
// calls that it waits for, or the text of a message.
func (p *post) conversation(raw json.RawMessage) error {
	var items []item
	if json.Unmarshal(raw, &items) != nil {
		return badRequest("parameter 'input' must be a list of objects")
	}
	from := len(items)
	for from > 0 && items[from-1].Role != "assistant" && items[from-1].Type != "function_call" {
		from--
	}
	items = items[from:]
	if n := len(items); n > 0 && items[n-1].Type == "function_call_output" {
		return p.outputs(items)
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

// outputs resumes the paused task with the results at the end.
func (p *post) outputs(items []item) error {
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

// itemText is a content: a text, or parts of which some have text.
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

// responseObject is the task's answer: one message, or the calls that a paused
// task waits for, which the answer holds in just this form (contract 5.5).
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

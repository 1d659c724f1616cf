package mcp

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/gateway"
)

// structured is the structured content of a result; its schema is [output].
type structured struct {
	TaskID    string     `json:"task_id"`
	Status    string     `json:"status"`
	Agent     string     `json:"agent,omitempty"`
	Subject   string     `json:"subject,omitempty"`
	Text      string     `json:"text,omitempty"`
	Data      any        `json:"data,omitempty"`
	Questions []question `json:"questions,omitempty"`
}

type question struct {
	ID     string          `json:"id"`
	Text   string          `json:"text"`
	Schema json.RawMessage `json:"schema,omitempty"`
}

// questionsOf are what an answer asks.
func questionsOf(a gateway.Answer) (list []question) {
	for _, q := range a.Questions {
		list = append(list, question{q.ID, q.Text, q.Schema})
	}
	return list
}

// working is the status of a task without an outcome.
const working = "working"

// statusOf is the status of a task with an outcome.
func statusOf(o gateway.Outcome) string {
	if o == gateway.NeedsInput {
		return "input_required"
	}
	return string(o)
}

// refused is what is wrong with the model's call.
type refused string

// Error implements error.
func (r refused) Error() string { return string(r) }

// refusal is a result with what was wrong with the model's call.
func refusal(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// busy is a refusal of a call that may be taken later.
func busy(text string) *mcp.CallToolResult {
	res := refusal(text)
	res.Meta = mayRepeat()
	return res
}

// working is the result of a call that was held long enough.
func (c *call) working() *mcp.CallToolResult {
	text := fmt.Sprintf("%s still works on it. Call %s with only task_id %q to wait for the answer.", c.x.Agent, c.tool.name, c.x.Conversation)
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: text}},
		StructuredContent: structured{TaskID: c.x.Conversation, Status: working, Agent: c.x.Agent},
	}
}

// needs is the result for a client that cannot ask a person.
func (c *call) needs(a gateway.Answer) *mcp.CallToolResult {
	var text strings.Builder
	s := structured{TaskID: c.x.Conversation, Status: statusOf(a.Outcome), Agent: c.x.Agent, Questions: questionsOf(a)}
	for _, q := range s.Questions {
		fmt.Fprintf(&text, "%s asks (question %s): %s\n", c.x.Agent, q.ID, q.Text)
	}
	answer := "the answer as message"
	if len(a.Questions) > 1 {
		answer = "a JSON object of the questions and their answers as message"
	}
	fmt.Fprintf(&text, "To answer, call %s with task_id %q and %s.", c.tool.name, c.x.Conversation, answer)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text.String()}}, StructuredContent: s}
}

// result is the result for an answer.
func (c *call) result(a gateway.Answer) (*mcp.CallToolResult, error) {
	s := structured{TaskID: c.x.Conversation, Status: string(a.Outcome), Agent: a.From, Subject: a.Subject, Text: a.Body}
	if a.Outcome != gateway.Done && s.Text == "" {
		s.Text = "the task has " + strings.ReplaceAll(s.Status, "_", " ")
	}
	var data any
	if json.Unmarshal([]byte(s.Text), &data) == nil {
		switch data.(type) {
		case map[string]any, []any:
			s.Data = data
		}
	}
	res := &mcp.CallToolResult{
		IsError: a.Outcome != gateway.Done, StructuredContent: s,
		Content: []mcp.Content{&mcp.TextContent{Text: s.Text}},
	}
	left := int64(maxPartBytes)
	for _, part := range a.Parts {
		content, err := c.part(part, &left)
		if err != nil {
			return nil, err
		}
		res.Content = append(res.Content, content)
	}
	return res, nil
}

// maxPartBytes bounds the parts of a result; what is more is named only.
const maxPartBytes = 4 << 20

// part is a blob of an answer: pictures and sounds as such, else a resource.
func (c *call) part(ref gateway.PartRef, left *int64) (mcp.Content, error) {
	tooLarge := &mcp.TextContent{Text: fmt.Sprintf("The part %q (%s) is too large for a result.", ref.Name, ref.Blob)}
	if ref.Size > *left || *left <= 0 {
		return tooLarge, nil
	}
	data, err := c.g.rt.Blob(c.ctx, c.x, ref)
	switch {
	case errors.Is(err, gateway.ErrUnknown):
		return &mcp.TextContent{Text: fmt.Sprintf("The part %q (%s) is not there.", ref.Name, ref.Blob)}, nil
	case err != nil:
		return nil, err
	case int64(len(data)) > *left:
		return tooLarge, nil
	}
	*left -= int64(len(data))
	switch kind, _, _ := strings.Cut(ref.Type, "/"); kind {
	case "image":
		return &mcp.ImageContent{Data: data, MIMEType: ref.Type}, nil
	case "audio":
		return &mcp.AudioContent{Data: data, MIMEType: ref.Type}, nil
	case "text":
		return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: c.partURI(ref), MIMEType: ref.Type, Text: string(data)}}, nil
	}
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: c.partURI(ref), MIMEType: ref.Type, Blob: data}}, nil
}

func (c *call) partURI(ref gateway.PartRef) string {
	return taskURI(c.x.Conversation) + "/parts/" + url.PathEscape(ref.Name) + "?sha256=" + base64.RawURLEncoding.EncodeToString(ref.Blob[:])
}

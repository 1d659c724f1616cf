package iacp

import (
	"testing"

	"skep/host/internal/gateway/iacp/message"
)

// TestPayloads (I-030, I-034): a body that is a typed message, or the payload of a question,
// leaves as that; every other one leaves as a text.
func TestPayloads(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		asks bool
		kind message.Type
		want string
	}{
		"a text":                      {`hello`, true, message.TaskRequest, `{"description":"s","parameters":{"body":"hello","subject":"s"},"task_type":"mail.message"}`},
		"a typed message":             {`{"message_type":"workflow_start","payload":{"a":1}}`, true, message.WorkflowStart, `{"a":1}`},
		"the payload of a task":       {`{"task_type":"weigh","parameters":{"n":1}}`, true, message.TaskRequest, `{"task_type":"weigh","parameters":{"n":1}}`},
		"the payload of a tool":       {`{"tool_name":"add","parameters":{}}`, true, message.ToolRequest, `{"tool_name":"add","parameters":{}}`},
		"a task and a tool":           {`{"task_type":"a","tool_name":"b"}`, true, message.TaskRequest, `{"description":"s","parameters":{"body":"{\"task_type\":\"a\",\"tool_name\":\"b\"}","subject":"s"},"task_type":"mail.message"}`},
		"a task of another type":      {`{"message_type":"task","task_type":"a"}`, true, message.TaskRequest, `{"description":"s","parameters":{"body":"{\"message_type\":\"task\",\"task_type\":\"a\"}","subject":"s"},"task_type":"mail.message"}`},
		"a type that is no text":      {`{"task_type":1}`, true, message.TaskRequest, `{"description":"s","parameters":{"body":"{\"task_type\":1}","subject":"s"},"task_type":"mail.message"}`},
		"a task that wants no answer": {`{"task_type":"a"}`, false, message.ContextShare, `{"context_type":"insights","data":{"body":"{\"task_type\":\"a\"}","subject":"s"},"scope":"session"}`},
	} {
		if kind, got := payloadOf("s", c.body, c.asks); kind != c.kind || string(got) != c.want {
			t.Errorf("%s leaves as %s %s", name, kind, got)
		}
	}
}

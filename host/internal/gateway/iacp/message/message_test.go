package message_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway/iacp/message"
)

// taskRequest is the document's first example (8.1); its ids are of version 1.
const taskRequest = `{
  "iacp_version": "1.0",
  "message_id": "123e4567-e89b-12d3-a456-426614174000",
  "timestamp": "2025-09-21T10:30:00Z",
  "sender": {"agent_id": "chat-agent-01", "agent_name": "Chat Handler"},
  "recipient": {"agent_id": "nlp-agent-01"},
  "message_type": "task_request",
  "payload": {
    "task_type": "sentiment_analysis",
    "description": "Analyze sentiment of user message",
    "parameters": {"text": "I love this new feature!", "language": "en"}
  },
  "metadata": {"requires_response": true, "response_timeout": 30}
}`

// taskResponse is the document's second example.
const taskResponse = `{
  "iacp_version": "1.0",
  "message_id": "456e7890-e89b-12d3-a456-426614174001",
  "timestamp": "2025-09-21T10:30:02Z",
  "sender": {"agent_id": "nlp-agent-01", "agent_name": "NLP Processor"},
  "recipient": {"agent_id": "chat-agent-01"},
  "message_type": "task_response",
  "parent_message_id": "123e4567-e89b-12d3-a456-426614174000",
  "payload": {"status": "completed", "result": {"sentiment": "positive", "confidence": 0.95, "emotions": ["joy", "satisfaction"]}}
}`

// TestExamples (V-I17, I-001, I-004, D-I4): the document's exchange is read as it is
// printed; in the strict profile its ids are refused.
func TestExamples(t *testing.T) {
	t.Parallel()
	read := message.Reader{Depth: message.MaxDepth}
	m, err := read.Read([]byte(taskRequest))
	if err != nil || m.Type != message.TaskRequest || m.To() != "nlp-agent-01" || m.Sender.ID != "chat-agent-01" || !m.Owed() {
		t.Errorf("got %+v, %v", m, err)
	}
	now := time.Now()
	if by := m.Deadline(now); !by.Equal(now.Add(30 * time.Second)) {
		t.Errorf("the sender waits until %v", by)
	}
	m, err = read.Read([]byte(taskResponse))
	if err != nil || m.Type.Class() != message.Answers || m.Parent != "123e4567-e89b-12d3-a456-426614174000" || m.Owed() {
		t.Errorf("got %+v, %v", m, err)
	}
	for _, text := range []string{taskRequest, taskResponse} {
		if _, err := (message.Reader{Depth: message.MaxDepth, Strict: true}).Read([]byte(text)); err == nil {
			t.Error("strict takes an id of version 1")
		}
	}
}

// TestRefusedMessages (I-002, I-005, I-007, I-009, I-070, I-078, V-I08, V-I11, V-I18, V-I19, D-I5,
// D-I10, D-I11): what is wrong is named with its member; what is unknown beside that is not
// wrong.
func TestRefusedMessages(t *testing.T) {
	t.Parallel()
	change := func(old, new string) string { return strings.Replace(taskRequest, old, new, 1) }
	deep := func(levels int) string {
		return change(`"language": "en"`, `"x": `+strings.Repeat("[", levels-2)+strings.Repeat("]", levels-2))
	}
	for name, c := range map[string]struct{ text, member string }{
		"an unknown member":       {change(`"iacp_version"`, `"x_own": [1], "iacp_version"`), ""},
		"a later minor version":   {change(`"1.0"`, `"1.1"`), ""},
		"64 characters":           {change("chat-agent-01", strings.Repeat("é", 64)), ""},
		"10 levels":               {deep(10), ""},
		"a group":                 {change(`"agent_id": "nlp-agent-01"`, `"group": {"capabilities": ["nlp"]}`), ""},
		"65 characters":           {change("chat-agent-01", strings.Repeat("é", 65)), "sender.agent_id"},
		"11 levels":               {deep(11), "message"},
		"another version":         {change(`"1.0"`, `"2.0"`), "iacp_version"},
		"no version":              {change(`"1.0"`, `""`), "iacp_version"},
		"an id that is no UUID":   {change("123e4567-e89b", "m1"), "message_id"},
		"an unknown type":         {change(`"task_request"`, `"task_demand"`), "message_type"},
		"no sender":               {change(`"chat-agent-01"`, `""`), "sender.agent_id"},
		"no recipient":            {change(`"recipient": {"agent_id": "nlp-agent-01"},`, ""), "recipient"},
		"two kinds of recipients": {change(`{"agent_id": "nlp-agent-01"}`, `{"agent_id": "x", "broadcast": true}`), "recipient"},
		"an unknown match":        {change(`"agent_id": "nlp-agent-01"`, `"group": {"capabilities": ["nlp"], "match": "none"}`), "recipient.group"},
		"no time":                 {change("2025-09-21T10:30:00Z", "yesterday"), "timestamp"},
		"an unknown priority":     {change(`"requires_response"`, `"priority": "top", "requires_response"`), "metadata.priority"},
		"no time to answer":       {change("30}", "0}"), "metadata.response_timeout"},
		"an endless time":         {change("30}", "1e300}"), "metadata.response_timeout"},
		"an expiry that is none":  {change(`"requires_response"`, `"expires_at": "soon", "requires_response"`), "metadata.expires_at"},
		"two readings":            {change(`"iacp_version"`, `"iacp_version": "2.0", "iacp_version"`), "message"},
		"broken UTF-8":            {change("chat-agent-01", "\xff"), "message"},
		"another type of member":  {change(`"chat-agent-01"`, `17`), "sender.agent_id"},
		"no object":               {"[17]", "message"},
		"a payload that is none":  {change(`"payload": {`, `"payload": 3, "was": {`), "payload"},
		"no JSON":                 {"iacp", "message"},
	} {
		_, err := (message.Reader{Depth: message.MaxDepth}).Read([]byte(c.text))
		var f *message.Fault
		switch {
		case c.member == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.member != "" && (!errors.As(err, &f) || f.Member != c.member):
			t.Errorf("%s: %v, want %s", name, err, c.member)
		}
	}
}

// TestTypeFaults (I-040, I-070): a member of another type is named with the type that it must have, in
// words of JSON.
func TestTypeFaults(t *testing.T) {
	t.Parallel()
	for change, want := range map[[2]string]string{
		{`"chat-agent-01"`, `17`}:                                   "sender.agent_id must be a text",
		{`"requires_response": true`, `"requires_response": "yes"`}: "metadata.requires_response must be true or false",
		{`"response_timeout": 30`, `"response_timeout": "30"`}:      "metadata.response_timeout must be a number",
		{`"response_timeout": 30`, `"hops": 1.5`}:                   "metadata.hops must be a whole number",
		{`"agent_name": "Chat Handler"`, `"capabilities": "chat"`}:  "sender.capabilities must be a list",
		{`{"agent_id": "nlp-agent-01"}`, `"nlp-agent-01"`}:          "recipient must be an object",
		{`"task_request"`, `["task_request"]`}:                      "message_type must be a text",
		{taskRequest, `[1]`}:                                        "message must be an object with the members of a message",
	} {
		_, err := (message.Reader{Depth: message.MaxDepth}).Read([]byte(strings.Replace(taskRequest, change[0], change[1], 1)))
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", change[1], err, want)
		}
	}
}

// TestIdentifiedFaults (I-007, I-023, I-040): with a fault comes by what its refusal names a message: the
// id, the type, the conversation, the sender and the recipient.
func TestIdentifiedFaults(t *testing.T) {
	t.Parallel()
	const id, from, to = "123e4567-e89b-12d3-a456-426614174000", "chat-agent-01", "nlp-agent-01"
	for name, c := range map[string]struct{ old, new, want string }{
		"too deep":               {`{"text"`, `{"x": ` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `, "text"`, id + from + to},
		"another type of member": {`"response_timeout": 30`, `"response_timeout": "30"`, id + from + to},
		"too long":               {`"agent_name"`, `"capabilities": ["` + strings.Repeat("x", 300<<10) + `"], "agent_name"`, id + to},
		"two ids":                {`"message_id"`, `"message_id": "m", "message_id"`, id + from + to},
		"an id that is a number": {`"` + id + `"`, `17`, from + to},
		"an id with a line":      {id, `1\n2`, from + to},
		"a sender of a number":   {`"` + from + `"`, `17`, id + to},
		"an id that is no UUID":  {id, "m1", "m1" + from + to},
		"a long sender":          {from, strings.Repeat("x", 65), id + to},
		"a recipient of a text":  {`{"agent_id": "` + to + `"}`, `"` + to + `"`, id + from},
		"cut off":                {`"language": "en"`, `"language`, id + from + to},
	} {
		m, err := (message.Reader{Depth: message.MaxDepth}).Read([]byte(strings.Replace(taskRequest, c.old, c.new, 1)))
		if got := m.ID + m.Sender.ID + m.To(); err == nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}

// TestKnownTypes (I-041, I-070): a refusal of an unknown type lists those that are known,
// always in the same order.
func TestKnownTypes(t *testing.T) {
	t.Parallel()
	_, err := (message.Reader{Depth: message.MaxDepth}).Read([]byte(strings.Replace(taskRequest, "task_request", "x", 1)))
	var f *message.Fault
	if !errors.As(err, &f) || !strings.HasPrefix(f.Expected, "ack agent_discover agent_discover_response ") || !strings.Contains(f.Expected, " tool_request ") {
		t.Errorf("got %v: %+v", err, f)
	}
}

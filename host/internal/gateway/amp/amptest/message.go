package amptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// Object is a JSON object.
type Object = map[string]any

// Message is the document's message with its wrapper.
type Message struct {
	Protocol string `json:"protocol"`
	Message  Body   `json:"message"`
}

// Body is the document's message.
type Body struct {
	ID        string `json:"id,omitempty"`
	Type      string `json:"type"`
	Timestamp string `json:"timestamp,omitempty"`
	Source    struct {
		AgentID   string `json:"agent_id,omitempty"`
		SessionID string `json:"session_id,omitempty"`
	} `json:"source"`
	Destination struct {
		AgentID    string `json:"agent_id,omitempty"`
		Capability string `json:"capability,omitempty"`
	} `json:"destination"`
	Headers Object `json:"headers,omitempty"`
	Payload Object `json:"payload"`
}

var lastID atomic.Int64

// New returns a message of a type as the document has it.
func New(kind, source, destination string, payload Object) Message {
	m := Message{Protocol: "AMP/1.0", Message: Body{
		ID: "msg-" + strconv.FormatInt(lastID.Add(1), 10), Type: kind, Timestamp: time.Now().UTC().Format(time.RFC3339),
		Headers: Object{}, Payload: payload,
	}}
	m.Message.Source.AgentID, m.Message.Destination.AgentID = source, destination
	return m
}

// Request returns a capability request.
func Request(source, destination, capability string, parameters Object) Message {
	return New("request", source, destination, Object{"capability": capability, "parameters": parameters})
}

// Mail returns a request that brings a text to an agent.
func Mail(source, destination, text string) Message {
	return Request(source, destination, "mail.message", Object{"body": text})
}

// Reply returns a message of a type in answer to m.
func (m Message) Reply(kind string, payload Object) Message {
	r := New(kind, m.Message.Destination.AgentID, m.Message.Source.AgentID, payload)
	r.Protocol = m.Protocol
	r.Message.Source.SessionID = m.Message.Source.SessionID
	r.Message.Headers["correlation_id"] = m.Message.ID
	return r
}

// Result is the payload of a response that succeeded.
func Result(result any) Object { return Object{"status": "success", "result": result} }

// Error is the payload of an error message.
func Error(code, text string) Object {
	return Object{"error": Object{"code": code, "message": text, "details": Object{}}}
}

// Text is the message as it is sent.
func (m Message) Text() string {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// Header is a text of the headers, empty if there is none.
func (m Message) Header(name string) string {
	text, _ := m.Message.Headers[name].(string)
	return text
}

// Fault is the code, the text and the reason of an error message.
func (m Message) Fault() (code, text, reason string) {
	fault, _ := m.Message.Payload["error"].(Object)
	details, _ := fault["details"].(Object)
	code, _ = fault["code"].(string)
	text, _ = fault["message"].(string)
	reason, _ = details["reason"].(string)
	return code, text, reason
}

// Details are the details of an error message.
func (m Message) Details() Object {
	fault, _ := m.Message.Payload["error"].(Object)
	details, _ := fault["details"].(Object)
	return details
}

// Result is the result of a response.
func (m Message) Result() Object {
	result, _ := m.Message.Payload["result"].(Object)
	return result
}

// Parse reads one message that has all members of the document.
func Parse(text []byte) (m Message, err error) {
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%q: %w", text, err)
	}
	b := m.Message
	if (m.Protocol != "AMP/1.0" && m.Protocol != "AIP/1.0") || b.ID == "" || b.Payload == nil {
		return m, fmt.Errorf("%q: a member is missing", text)
	}
	if _, err := time.Parse(time.RFC3339, b.Timestamp); err != nil {
		return m, fmt.Errorf("%q: %w", text, err)
	}
	return m, nil
}

// Client sends messages over HTTP.
type Client struct {
	URL, Token string
	HTTP       *http.Client
}

// Reply is what came back for a message.
type Reply struct {
	Status int
	Header http.Header
	Text   string
	// Message is set where the reply is one.
	Message *Message
}

// Send posts a message. Further strings are names and values of headers.
func (c Client) Send(m Message, header ...string) (Reply, error) { return c.Post(m.Text(), header...) }

// Post posts a text.
func (c Client) Post(text string, header ...string) (Reply, error) {
	req, err := http.NewRequest(http.MethodPost, c.URL, bytes.NewReader([]byte(text)))
	if err != nil {
		return Reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	return c.do(req, header)
}

// Get reads from an address.
func (c Client) Get(url string, header ...string) (Reply, error) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return Reply{}, err
	}
	return c.do(req, header)
}

func (c Client) do(req *http.Request, header []string) (r Reply, err error) {
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	r = Reply{Status: resp.StatusCode, Header: resp.Header, Text: string(text)}
	if m, parseErr := Parse(text); parseErr == nil {
		r.Message = &m
	}
	return r, err
}

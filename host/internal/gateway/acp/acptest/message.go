package acptest

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

// Header is the document's header, with skep's field about progress.
type Header struct {
	Version        string `json:"version"`
	Sender         string `json:"sender"`
	Receiver       string `json:"receiver"`
	Type           string `json:"type"`
	ID             string `json:"id"`
	Timestamp      string `json:"timestamp"`
	ContentType    string `json:"content_type"`
	ReplyTo        string `json:"reply_to,omitempty"`
	ConversationID string `json:"conversation_id,omitempty"`
	Progress       string `json:"x_progress,omitempty"`
}

// Message is the document's message. The body is a string whatever it holds.
type Message struct {
	Header Header `json:"header"`
	Body   string `json:"body"`
}

var lastID atomic.Int64

// New returns a message as the document's example has it.
func New(kind, sender, receiver, body string) Message {
	return Message{Header: Header{
		Version: "1.0", Sender: sender, Receiver: receiver, Type: kind, ID: "msg" + strconv.FormatInt(lastID.Add(1), 10),
		Timestamp: time.Now().UTC().Format(time.RFC3339Nano), ContentType: "text/plain",
	}, Body: body}
}

// Reply returns a message of a type in answer to m, linked by reply_to and of the same
// conversation.
func (m Message) Reply(kind, body string) Message {
	r := New(kind, m.Header.Receiver, m.Header.Sender, body)
	r.Header.ReplyTo, r.Header.ConversationID, r.Header.ContentType = m.Header.ID, m.Header.ConversationID, m.Header.ContentType
	return r
}

// Text is the message as it is sent.
func (m Message) Text() string {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// Parse reads one message and nothing else.
func Parse(text []byte) (m Message, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&m); err != nil {
		return m, fmt.Errorf("%q: %w", text, err)
	}
	h := m.Header
	for _, required := range []string{h.Version, h.Sender, h.Receiver, h.Type, h.ID, h.Timestamp, h.ContentType} {
		if required == "" {
			return m, fmt.Errorf("%q: a required field of the header is missing", text)
		}
	}
	if _, err := time.Parse(time.RFC3339Nano, h.Timestamp); err != nil {
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

// Send posts a text. Further strings are names and values of headers.
func (c Client) Send(text string, header ...string) (Reply, error) {
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
	req.Header.Set("Authorization", "Bearer "+c.Token)
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
	if err != nil {
		return r, err
	}
	r = Reply{Status: resp.StatusCode, Header: resp.Header, Text: string(text)}
	if resp.Header.Get("Content-Type") == "application/json" {
		if m, err := Parse(text); err == nil {
			r.Message = &m
		}
	}
	return r, nil
}

package iacptest

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Message is the document's message.
type Message struct {
	Version      string         `json:"iacp_version"`
	ID           string         `json:"message_id"`
	Timestamp    string         `json:"timestamp"`
	Sender       Agent          `json:"sender"`
	Recipient    *Recipient     `json:"recipient,omitempty"`
	Type         string         `json:"message_type"`
	Conversation string         `json:"conversation_id,omitempty"`
	Parent       string         `json:"parent_message_id,omitempty"`
	Payload      map[string]any `json:"payload"`
	Metadata     map[string]any `json:"metadata,omitempty"`
	// Raw is the message as it came.
	Raw string `json:"-"`
}

// Agent is the document's sender.
type Agent struct {
	ID   string `json:"agent_id"`
	Name string `json:"agent_name,omitempty"`
}

// Recipient is the document's recipient.
type Recipient struct {
	ID        string `json:"agent_id,omitempty"`
	Broadcast bool   `json:"broadcast,omitempty"`
}

// New returns a message with an id of its own.
func New(kind, from, to string, payload map[string]any) Message {
	m := Message{Version: "1.0", ID: uuid.NewString(), Timestamp: time.Now().UTC().Format(time.RFC3339), Sender: Agent{ID: from}, Type: kind, Payload: payload}
	if to != "" {
		m.Recipient = &Recipient{ID: to}
	}
	return m
}

// Text is the message as it is sent.
func (m Message) Text() []byte {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return text
}

// Reply returns a message in answer to m.
func (m Message) Reply(kind string, payload map[string]any) Message {
	to := "them"
	if m.Recipient != nil && m.Recipient.ID != "" {
		to = m.Recipient.ID
	}
	r := New(kind, to, m.Sender.ID, payload)
	r.Parent, r.Conversation = m.ID, m.Conversation
	return r
}

// Conn is a connection.
type Conn struct {
	net.Conn
	in      *bufio.Reader
	writing sync.Mutex
}

// Dial opens a connection, shakes hands and shows a token. Features are what the handshake
// offers.
func Dial(addr, token string, features ...string) (*Conn, error) {
	raw, err := net.DialTimeout("tcp", addr, time.Minute)
	if err != nil {
		return nil, err
	}
	c := Begun(raw)
	if err := c.Begin(token, features...); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return c, nil
}

// Begun returns a connection over one that is there, without a handshake.
func Begun(raw net.Conn) *Conn { return &Conn{Conn: raw, in: bufio.NewReaderSize(raw, readBuffer)} }

// readBuffer has room for several small frames: they come by one read, as by the clients of others.
const readBuffer = 2 << 10

// Begin shakes hands and shows a token.
func (c *Conn) Begin(token string, features ...string) error {
	if err := c.expect(New("handshake", "them", "", map[string]any{"versions": []string{"1.0"}, "features": features}), "handshake_ack"); err != nil {
		return err
	}
	return c.expect(New("auth", "them", "", map[string]any{"method": "token", "token": token}), "auth_result")
}

// expect sends a message and reads one of a type about it.
func (c *Conn) expect(m Message, kind string) error {
	if err := c.Send(m.Text()); err != nil {
		return err
	}
	got, err := c.Read()
	if err != nil {
		return err
	}
	if got.Type != kind || got.Parent != m.ID {
		return fmt.Errorf("a %s is answered by %s", m.Type, got.Raw)
	}
	return nil
}

// Register registers an agent, and returns the answer.
func (c *Conn) Register(agent string) (Message, error) {
	m := New("agent_register", agent, "", map[string]any{"agent_info": map[string]any{"agent_id": agent, "agent_type": "specialist"}})
	if err := c.Send(m.Text()); err != nil {
		return m, err
	}
	got, err := c.Read()
	if err == nil && got.Type != "agent_register_response" {
		err = fmt.Errorf("a registration is answered by %s", got.Raw)
	}
	return got, err
}

// Send sends messages, each in a frame, by one write.
func (c *Conn) Send(texts ...[]byte) error {
	var frames []byte
	for _, text := range texts {
		frames = append(binary.BigEndian.AppendUint32(frames, uint32(len(text))), text...)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.Write(frames)
	return err
}

// Read reads the next message that is no heartbeat, and answers the heartbeats before it.
func (c *Conn) Read() (m Message, err error) {
	for {
		var length [4]byte
		if _, err := io.ReadFull(c.in, length[:]); err != nil {
			return m, err
		}
		text := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err := io.ReadFull(c.in, text); err != nil {
			return m, err
		}
		m = Message{Raw: string(text)}
		if err := json.Unmarshal(text, &m); err != nil {
			return m, fmt.Errorf("%q: %w", text, err)
		}
		if _, err := uuid.Parse(m.ID); err != nil || m.Version != "1.0" || m.Sender.ID == "" || m.Payload == nil {
			return m, fmt.Errorf("%q is no message of the document", text)
		}
		if m.Type != "heartbeat" {
			return m, nil
		}
		alive := New("heartbeat_ack", "them", m.Sender.ID, map[string]any{})
		alive.Parent = m.ID
		if err := c.Send(alive.Text()); err != nil {
			return m, err
		}
	}
}

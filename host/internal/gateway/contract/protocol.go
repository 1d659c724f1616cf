package contract

import (
	"context"
	"testing"
	"time"

	"skep/host"
)

// Protocol is what the suite needs of one protocol.
type Protocol struct {
	// Name is the name of the gateway's table, Table and Partner more lines of it and of
	// the tables of its partners that are called. EachPartner are lines of the tables of all
	// partners, in which PARTNER stands for the partner's name.
	Name, Table, Partner, EachPartner string
	// Cert and Key are the files of the certificate with which the host serves TLS at
	// 127.0.0.1, which is its own authority. They are empty for a host without TLS.
	Cert, Key string
	// IDs are the patterns of the ids of a partner's agents, as depot-*; nil for the names
	// themselves, and partners with one agent have none.
	IDs func(name string) []string
	// NoHold is set where the host never holds a caller that waits.
	NoHold bool
	// Self is the agent as which a client of depot speaks, where a question to it is a message
	// of its own that the agent of Serve answers; empty where clients are shown questions.
	Self string
	// Realms and Users are set where such callers come in: a realm with the role agent,
	// users for themselves.
	Realms, Users bool
	// Without are the cases that the protocol cannot express, by their numbers or by the
	// names of their parts as 06/user, and the reasons.
	Without map[string]string
	// Broker is set where messages go by way of a broker: they wait there for a host that is away, and
	// so do their senders. Answers leave as messages of their own.
	Broker bool
	// Agent returns the name of the agent of a partner that ours write to; nil is x for each.
	Agent func(partner string) string
	// Place returns the protocol with lines, Dial and Serve for one host, where hosts must not share
	// what is between them and their partners; nil where they may.
	Place func(t testing.TB) Protocol
	// Sign signs a body that was changed, nil where messages are not signed.
	Sign func(body []byte) []byte
	// Gateway makes the gateway if the build does not have it.
	Gateway host.NewGateway
	// Dial returns a client of the host at a URL that shows a token.
	Dial func(t testing.TB, url, token string) Client
	// Serve starts a foreign agent at an address, "127.0.0.1:0" for any, and returns the
	// url of its partner's table, and what stops it. It is nil where nothing is called.
	Serve func(t testing.TB, address string, handle Handler) (url string, stop func())
}

// agentOf is the name by which ours write to the agent of a partner.
func (p Protocol) agentOf(partner string) string {
	if p.Agent == nil {
		return "x@" + partner
	}
	return p.Agent(partner) + "@" + partner
}

// Client speaks the protocol with a host. A refusal is an error of type [*Refused]. The
// methods may be called at the same time.
type Client interface {
	// Send sends a message and returns what comes of it: its answer, a question, or Working
	// where the host held it long enough.
	Send(ctx context.Context, m Message) (State, error)
	// Look returns the state of a message now.
	Look(ctx context.Context, m Message) (State, error)
	// Read reads the stream of a message from a chunk on, to its end or a question. An
	// empty piece comes first, when the host has opened the stream.
	Read(ctx context.Context, m Message, from int64, each func(Piece)) (State, error)
	// Cancel withdraws a message.
	Cancel(ctx context.Context, m Message) error
	// Encode writes the body of the request that sends a message, and Post sends a body.
	Encode(m Message) []byte
	Post(ctx context.Context, body []byte) (State, error)
}

// Handler is a foreign agent: it answers a message of ours, or refuses it with a
// [*Refused]. The context ends when we withdraw the message. show sends a piece of the
// answer before it.
type Handler func(ctx context.Context, m Message, show func(Piece)) (State, error)

// Kind is what a message wants.
type Kind string

// The kinds of messages.
const (
	Ask       Kind = "" // an answer
	Tell      Kind = "tell"
	Interrupt Kind = "interrupt"
	Answer    Kind = "answer" // of a question, Message.Question
)

// Message is a message of one side, with what the protocol has of its members.
type Message struct {
	ID     string
	Kind   Kind
	From   string // the sender's name, empty for whom the token shows
	To     string // an agent
	Thread string // the conversation
	// Question is what an answer answers, of the message On.
	Question      Question
	On            string
	Subject, Text string
	Parts         []Part
	By            time.Time // when the sender stops waiting
	Hops          int
	// Push wants the answer at the sender's address, too.
	Push bool
	// Extra are members that no side knows.
	Extra map[string]any
}

// Part is content that is not text.
type Part struct {
	Name, Type string
	Data       []byte
}

// Status is how far a message is.
type Status string

// The states of a message.
const (
	Working   Status = "working"
	Asks      Status = "asks"
	Done      Status = "done"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// State is the state of a message.
type State struct {
	Status        Status
	Thread        string
	Subject, Text string
	Parts         []Part
	Questions     []Question
	Extra         map[string]any
	// Raw is the state as it came, for what must be the same bytes.
	Raw string
}

// Question is what an agent asks.
type Question struct {
	ID, Text string
	// Person is set for what a person is asked.
	Person bool
}

// Piece is a piece of an answer: a chunk with its number, or progress.
type Piece struct {
	N        int64
	Chunk    string
	Progress string
}

// Refused is why a side does not do what the other wants.
type Refused struct {
	Reason Reason
	Text   string
}

// Error implements error.
func (e *Refused) Error() string { return string(e.Reason) + ": " + e.Text }

// Reason is the kind of a refusal.
type Reason string

// The kinds of refusals. A protocol without a word for one uses another; the cases
// accept what their table has.
const (
	Unknown      Reason = "unknown"
	Conflict     Reason = "conflict"
	Denied       Reason = "denied"
	Invalid      Reason = "invalid"
	Large        Reason = "large"
	Busy         Reason = "busy"
	NoCredential Reason = "no credential"
	Stopping     Reason = "stopping"
	Internal     Reason = "internal"
	// Unsaid is what its sender finds of a message that was set aside without a reason.
	Unsaid Reason = "set aside"
)

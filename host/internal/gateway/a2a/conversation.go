package a2a

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
	"skep/spec/mail"
)

// kindConversation is the kind of the records of conversations with foreign agents.
const kindConversation = "conversation"

// conversationLife is how long a conversation is known that is not continued.
const conversationLife = 30 * 24 * time.Hour

// maxConversations is how many conversations of a realm are kept at most: the rest of its
// records is for its push addresses.
const maxConversations = state.MaxOfRealm / 2

// newRecords returns the store of the gateway's records, in which the conversations that were
// silent for longest make room.
func newRecords(store state.Store, most int) state.Evicting {
	return state.Evicting{Store: store, Kind: kindConversation, Most: most, InUse: func(value []byte) bool {
		var r conversationRecord
		return json.Unmarshal(value, &r) == nil && r.Open != nil
	}}
}

// conversationRecord is what a task of ours has with one foreign agent.
type conversationRecord struct {
	Context string       `json:"context,omitempty"` // the foreign context
	Open    *openMessage `json:"open,omitempty"`

	version int64
}

// openMessage is the message that is under way.
type openMessage struct {
	Message string `json:"message"`
	// Answers is our request that the outcome answers: the message, or the one about
	// which the foreign agent had asked.
	Answers string `json:"answers"`
	// Task is the foreign task, as soon as it is known.
	Task  a2a.TaskID `json:"task,omitempty"`
	Since time.Time  `json:"since"`
}

// key names the conversation of our task with the other side of the message. An interrupt
// overtakes the request under way and has a conversation of its own, unless it cancels.
func (e *attempt) key() state.Key {
	w := e.d.Wrapper
	parts := []string{w.SourceSwarm, w.TaskOwner, w.Payload.TaskID, agentName(w.Payload.Recipient())}
	if w.Type == mail.Interrupt && !e.cancels() {
		parts = append(parts, "interrupt")
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x1f")))
	return state.Key{Tenant: e.d.Task.Tenant, Gateway: Name, Realm: e.p.Name, Kind: kindConversation, Name: hex.EncodeToString(sum[:])}
}

// agentName is the name of an agent without its swarm.
func agentName(a mail.Address) string {
	name, _, _ := strings.Cut(a.Name, "@")
	return name
}

func (e *attempt) load(ctx context.Context) error {
	r, version, err := state.Load[conversationRecord](ctx, e.g.records, e.key())
	e.record, e.record.version = r, version
	return err
}

func (e *attempt) store(ctx context.Context) error {
	if e.unstored {
		return nil
	}
	version, err := state.Save(ctx, e.g.records, e.key(), e.record.version, e.record, conversationLife)
	e.record.version = version
	return err
}

// open makes the message the one under way, before it is sent. It is already where an
// attempt before has sent it: first reports that none has.
func (e *attempt) open(ctx context.Context, m openMessage) (first bool, err error) {
	if e.record.Open != nil && e.record.Open.Message == e.d.Wrapper.MessageID {
		return false, nil
	}
	m.Message, m.Since = e.d.Wrapper.MessageID, time.Now()
	e.record.Open = &m
	return true, e.store(ctx)
}

// asked is the note of a question that a foreign agent has for ours.
type asked struct {
	Task    a2a.TaskID `json:"task"`
	Context string     `json:"context"`
	Answers string     `json:"answers"`
}

// askedBy returns the note of an exchange.
func askedBy(x gateway.Exchange) (asked, error) {
	var a asked
	err := json.Unmarshal(x.Note, &a)
	if err == nil && a.Task == "" {
		err = errors.New("the exchange is no question")
	}
	return a, err
}

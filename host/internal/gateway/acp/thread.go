package acp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/mailbox"
	"skep/host/internal/gateway/state"
)

// kindConversation is the kind of the records of conversations with foreign agents.
const kindConversation = "conversation"

// Limits of a thread.
const (
	threadLife  = 30 * 24 * time.Hour // without a message
	maxOpen     = 64                  // questions that wait at once
	maxAnswered = 32                  // answered questions that are remembered
	maxTold     = 32                  // messages that are remembered as no answers
)

// thread is what a conversation of ours has with one foreign agent: whom its messages
// reach here.
type thread struct {
	// Last is the newest message of ours.
	Last gateway.OutboxRef `json:"last"`
	// Theirs means that the foreign agent began the conversation: what it says besides
	// answers goes to the agents that it names.
	Theirs bool `json:"theirs,omitempty"`
	// Open are the messages that wait for an answer, Answered the last ones that have one.
	Open     []openQuestion     `json:"open,omitempty"`
	Answered []answeredQuestion `json:"answered,omitempty"`
	// Told are the ids of the last messages that named no question and answered none.
	Told []string `json:"told,omitempty"`
}

// maxThreads is how many threads of a realm are kept at most: the rest of its records is
// for its mailbox.
const maxThreads = state.MaxOfRealm - mailbox.MaxMessages

// newRecords returns the store of the gateway's records, in which the threads that were
// silent for longest make room.
func newRecords(store state.Store, most int) state.Evicting {
	return state.Evicting{Store: store, Kind: kindConversation, Most: most, InUse: func(value []byte) bool {
		var t thread
		return json.Unmarshal(value, &t) == nil && len(t.Open) > 0
	}}
}

// answeredQuestion has the id of a message of ours and of the one that answered it.
type answeredQuestion struct {
	ID string `json:"id"`
	By string `json:"by"`
}

// openQuestion is a message that waits for its answer.
type openQuestion struct {
	ID    string            `json:"id"` // of the message
	Since time.Time         `json:"since"`
	Sent  gateway.OutboxRef `json:"sent"`
}

// threadName names a conversation with one foreign agent, in 32 bytes.
func threadName(conversation, agent string) string {
	sum := sha256.Sum256([]byte(conversation + "\x1f" + agent))
	return hex.EncodeToString(sum[:16])
}

func threadKey(tenant, realm, name string) state.Key {
	return state.Key{Tenant: tenant, Gateway: Name, Realm: realm, Kind: kindConversation, Name: name}
}

// The id of a message of ours begins with the name of its thread, so that an answer needs
// nothing but its reply_to.
func messageID(thread, message string) string { return thread + "." + message }

// splitID is the inverse of messageID.
func splitID(id string) (thread, message string, ok bool) {
	thread, message, ok = strings.Cut(id, ".")
	return thread, message, ok && len(thread) == 32
}

// changeThread changes a thread, again when another message has changed it meanwhile.
func (g *Gateway) changeThread(ctx context.Context, key state.Key, change func(*thread) error) error {
	return state.Change(ctx, g.records, key, threadLife, change)
}

// find returns the index of an open question, -1 for none.
func (t *thread) find(id string) int {
	return slices.IndexFunc(t.Open, func(q openQuestion) bool { return q.ID == id })
}

// open adds a question, unless an attempt before has.
func (t *thread) open(id string, s gateway.OutboxRef) error {
	t.Last = s
	if t.find(id) >= 0 || t.isAnswered(id) {
		return nil
	}
	if len(t.Open) >= maxOpen {
		return fmt.Errorf("%d questions to %s wait: %w", maxOpen, s.To, gateway.ErrBusy)
	}
	t.Open = append(t.Open, openQuestion{ID: id, Since: time.Now(), Sent: s})
	return nil
}

// close takes a question out; by is the id of the message that answered it, empty for none.
func (t *thread) close(id, by string) {
	i := t.find(id)
	if i < 0 {
		return
	}
	t.Open = slices.Delete(t.Open, i, i+1)
	if by != "" {
		t.Answered = append(t.Answered, answeredQuestion{id, by})
		t.Answered = t.Answered[max(0, len(t.Answered)-maxAnswered):]
	}
}

func (t *thread) isAnswered(id string) bool {
	return slices.ContainsFunc(t.Answered, func(a answeredQuestion) bool { return a.ID == id })
}

// hasAnswer reports whether a foreign message has answered a question.
func (t *thread) hasAnswer(by string) bool {
	return slices.ContainsFunc(t.Answered, func(a answeredQuestion) bool { return a.By == by })
}

// tell remembers a message that answers no question.
func (t *thread) tell(id string) {
	if !t.isTold(id) {
		t.Told = append(t.Told, id)
		t.Told = t.Told[max(0, len(t.Told)-maxTold):]
	}
}

func (t *thread) isTold(id string) bool { return slices.Contains(t.Told, id) }

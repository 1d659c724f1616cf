package uamp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/uamp/envelope"
)

// kindConversation is the kind of the records of conversations with foreign agents.
const kindConversation = "conversation"

// Limits of a thread.
const (
	threadLife  = 30 * 24 * time.Hour // without an envelope
	maxOpen     = 64                  // envelopes under way at once, and as many subscriptions
	maxAnswered = 32                  // answered envelopes that are remembered
	maxTold     = 32                  // envelopes without an answer that are remembered
	openLife    = time.Hour           // of an open envelope beyond the times of its partner
)

// thread is what a task of ours has with one foreign agent.
type thread struct {
	// Last is the newest envelope that reached the agent, if its hash there is known.
	Last *lastEnvelope `json:"last,omitempty"`
	// Open are the envelopes that are under way or wait for an answer, Answered the last
	// ones that have one.
	Open     []openEnvelope     `json:"open,omitempty"`
	Answered []answeredEnvelope `json:"answered,omitempty"`
	// Told are the last envelopes without an answer that the agent has: a repeat of one
	// would have another time.
	Told []envelope.ID `json:"told,omitempty"`
}

// lastEnvelope is what later envelopes cite.
type lastEnvelope struct {
	ID   envelope.ID `json:"id"`
	Hash string      `json:"hash"`
}

// openEnvelope is an envelope of ours that is under way.
type openEnvelope struct {
	ID     envelope.ID     `json:"id"`
	Intent envelope.Intent `json:"intent"`
	To     string          `json:"to"`
	// Since is the time in the envelope, the same in each attempt that may have arrived.
	Since time.Time `json:"since"`
	// Until is when no attempt goes on with it any more.
	Until time.Time `json:"until"`
	// Stream is the address of the stream with the answer, as soon as it is known.
	Stream string `json:"stream,omitempty"`
	// Gone is the address at which the partner had no stream last, GoneSince since when it has shown none.
	Gone      string    `json:"gone_stream,omitempty"`
	GoneSince time.Time `json:"gone_since,omitzero"`
	// Announced is the hash that a confirm has named of the last delta, before that was read.
	Announced string `json:"announced,omitempty"`
	// Cites is the envelope before, nil for none.
	Cites *lastEnvelope     `json:"cites,omitempty"`
	Sent  gateway.OutboxRef `json:"sent"`
}

// answeredEnvelope is an envelope of ours that has its answer.
type answeredEnvelope struct {
	ID     envelope.ID     `json:"id"`
	Intent envelope.Intent `json:"intent"`
	To     string          `json:"to"`
	// Failed is set for an answer that is an error or a no, Sum is the hash of what the last
	// delta of the stream had, empty without one.
	Failed bool              `json:"failed,omitempty"`
	Sum    string            `json:"sum,omitempty"`
	Sent   gateway.OutboxRef `json:"sent"`
}

// maxThreads is how many threads of a realm are kept at most: the rest of its records is
// for its streams.
const maxThreads = state.MaxOfRealm / 2

// newThreads returns the store of threads, in which those that were silent for longest
// make room.
func newThreads(store state.Store) state.Evicting {
	return state.Evicting{Store: store, Kind: kindConversation, Most: maxThreads, InUse: func(value []byte) bool {
		var t thread
		return json.Unmarshal(value, &t) == nil && slices.ContainsFunc(t.Open, openEnvelope.inUse)
	}}
}

// The id of an envelope of ours is a UUID of version 4 whose first half names the thread,
// so that what answers it needs nothing but its reply_to.
func newOwnID(conversation, foreign, message string) envelope.ID {
	var id uuid.UUID
	thread, own := sha256.Sum256([]byte(conversation+"\x1f"+foreign)), sha256.Sum256([]byte(message))
	copy(id[:8], thread[:])
	copy(id[8:], own[:])
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return envelope.ID(id.String())
}

// threadName is the part of an id that names its thread. Ids of others name none that is
// known.
func threadName(id envelope.ID) (name string, ok bool) {
	parsed, err := uuid.Parse(string(id))
	return hex.EncodeToString(parsed[:8]), err == nil
}

func threadKey(c gateway.Caller, name string) state.Key {
	return state.Key{Tenant: c.Principal.Tenant, Gateway: Name, Realm: c.Realm, Kind: kindConversation, Name: name}
}

// changeThread changes a thread, again when another envelope has changed it meanwhile.
func (g *Gateway) changeThread(ctx context.Context, key state.Key, change func(*thread) error) error {
	return state.Change(ctx, g.threads, key, threadLife, change)
}

// errNotOpen keeps a thread as it is.
var errNotOpen = errors.New("the envelope is not open")

// changeOpen changes the thread of an envelope that is open there. Nothing is written for
// another one: its thread may have been erased.
func (g *Gateway) changeOpen(ctx context.Context, key state.Key, id envelope.ID, change func(*thread)) error {
	err := g.changeThread(ctx, key, func(t *thread) error {
		if t.find(id) < 0 {
			return errNotOpen
		}
		change(t)
		return nil
	})
	if errors.Is(err, errNotOpen) {
		return nil
	}
	return err
}

// find returns the index of an open envelope, -1 for none.
func (t *thread) find(id envelope.ID) int {
	return slices.IndexFunc(t.Open, func(o openEnvelope) bool { return o.ID == id })
}

// answered returns what answered an envelope.
func (t *thread) answered(id envelope.ID) (a answeredEnvelope, ok bool) {
	i := slices.IndexFunc(t.Answered, func(a answeredEnvelope) bool { return a.ID == id })
	if i < 0 {
		return a, false
	}
	return t.Answered[i], true
}

// inUse reports whether an attempt may go on with the envelope. One that is in doubt for good
// stays, as an answer may come, while there is room.
func (o openEnvelope) inUse() bool { return time.Now().Before(o.Until) }

// open adds an envelope, unless an attempt before has.
func (t *thread) open(o openEnvelope) error {
	if i := t.find(o.ID); i >= 0 {
		t.Open[i].Until = o.Until
		return nil
	}
	if t.isFull(o) {
		t.Open = slices.DeleteFunc(t.Open, func(o openEnvelope) bool { return !o.inUse() })
	}
	switch full := t.isFull(o); {
	case full && o.subscribes():
		return gateway.Refuse("the task has %d subscriptions at %s, which are as many as it may: end one by unsubscribe", maxOpen, o.To)
	case full:
		return fmt.Errorf("%d envelopes to %s wait: %w", maxOpen, o.To, gateway.ErrBusy)
	}
	t.Open = append(t.Open, o)
	return nil
}

func (o openEnvelope) subscribes() bool { return o.Intent == envelope.Subscribe }

// isFull reports whether an envelope has no place: subscriptions, which stay for long, take none
// from the others.
func (t *thread) isFull(o openEnvelope) bool {
	n := 0
	for _, other := range t.Open {
		if other.subscribes() == o.subscribes() {
			n++
		}
	}
	return n >= maxOpen
}

// drop takes an envelope out that is not under way any more.
func (t *thread) drop(id envelope.ID) (o openEnvelope, ok bool) {
	i := t.find(id)
	if i < 0 {
		return o, false
	}
	o = t.Open[i]
	t.Open = slices.Delete(t.Open, i, i+1)
	return o, true
}

// answer makes an open envelope an answered one.
func (t *thread) answer(id envelope.ID, failed bool, sum string) {
	if o, ok := t.drop(id); ok {
		t.Answered = append(t.Answered, answeredEnvelope{ID: id, Intent: o.Intent, To: o.To, Failed: failed, Sum: sum, Sent: o.Sent})
		t.Answered = t.Answered[max(0, len(t.Answered)-maxAnswered):]
	}
}

// tell makes an open envelope one that the agent has.
func (t *thread) tell(id envelope.ID) {
	if _, ok := t.drop(id); ok {
		t.Told = append(t.Told, id)
		t.Told = t.Told[max(0, len(t.Told)-maxTold):]
	}
}

// newestAsk is the newest open envelope that can be withdrawn.
func (t *thread) newestAsk() (o openEnvelope, ok bool) {
	for _, o := range slices.Backward(t.Open) {
		if o.Intent == envelope.Ask || o.Intent == envelope.Propose || o.Intent == envelope.Subscribe {
			return o, true
		}
	}
	return o, false
}

// foreignDID finds the DID of a recipient NAME@PARTNER: the name is the DID, or the last
// part of one of the partner's ids. The star at the end of an id is any such part.
func foreignDID(p gateway.Partner, address string) (string, error) {
	name, err := gateway.RecipientID(address)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(name, "did:") && (len(p.IDs) == 0 || p.Owns(name)) {
		return name, nil
	}
	for _, id := range p.IDs {
		i := strings.LastIndexByte(id, ':') + 1
		if begin, last := id[:i], id[i:]; !strings.Contains(begin, "*") && !strings.Contains(name, ":") && (last == name || last == "*") {
			return begin + name, nil
		}
	}
	return "", gateway.Refuse("%.200q is the last part of no DID of %s: add it to ids in [gateways.uamp.partners.%s], as in \"did:web:lab.example:agents:*\"", name, p.Name, p.Name)
}

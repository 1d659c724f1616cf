package acp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/message"
	"skep/host/internal/gateway/state"
)

// kindMailbox is the kind of the records of messages that wait for realms without an
// address.
const kindMailbox = "mailbox"

// Limits of a realm's mailbox, and of one answer with messages of it.
const (
	maxMailboxMessages = 1000
	maxMailboxBytes    = 16 << 20
	mailboxPage        = 100     // messages
	maxMailboxAnswer   = 4 << 20 // bytes
	mailboxLife        = 30 * 24 * time.Hour
)

// mailboxes keep the messages for realms that fetch them. A message stays until
// its receiver has read past it.
type mailboxes struct {
	store state.Store
	mu    sync.Mutex
	boxes map[state.Key]*mailbox // by their key without a name
}

// mailbox is what is known of a realm's messages in the store.
type mailbox struct {
	mu     sync.Mutex
	loaded bool
	count  int
	size   int
	last   int64 // the number of the newest message
	// messages are what is known of each, by receiver and id.
	messages map[string]mailed
	// changed is closed and replaced by every message.
	changed chan struct{}
}

// mailed is a message in a mailbox: its digest, the name of its record and its size.
type mailed struct {
	digest [sha256.Size]byte
	name   string
	size   int
}

func newMailboxes(store state.Store) *mailboxes {
	return &mailboxes{store: store, boxes: map[state.Key]*mailbox{}}
}

func mailboxKey(c gateway.Caller) state.Key {
	return state.Key{Tenant: c.Principal.Tenant, Gateway: Name, Realm: c.Realm, Kind: kindMailbox}
}

// box returns the loaded mailbox of a realm, locked.
func (all *mailboxes) box(ctx context.Context, key state.Key) (*mailbox, error) {
	all.mu.Lock()
	b := all.boxes[key]
	if b == nil {
		b = &mailbox{changed: make(chan struct{})}
		all.boxes[key] = b
	}
	all.mu.Unlock()
	b.mu.Lock()
	if b.loaded {
		return b, nil
	}
	b.count, b.size, b.messages = 0, 0, map[string]mailed{}
	for after := (state.Key{}); ; {
		list, err := all.store.List(ctx, key, after, mailboxPage)
		if err != nil {
			b.mu.Unlock()
			return nil, err
		}
		for _, r := range list {
			b.add(r)
			after = r.Key
		}
		if len(list) < mailboxPage {
			b.loaded = true
			return b, nil
		}
	}
}

func (b *mailbox) add(r state.Record) {
	var m message.Message
	if m.UnmarshalJSON(r.Value) == nil {
		if sum, err := digest(m); err == nil {
			b.messages[idIn(m)] = mailed{sum, r.Key.Name, len(r.Value)}
		}
	}
	b.count++
	b.size += len(r.Value)
	b.last = max(b.last, numberOf(r.Key.Name))
}

func (b *mailbox) remove(r state.Record) {
	var m message.Message
	if m.UnmarshalJSON(r.Value) == nil {
		delete(b.messages, idIn(m))
	}
	b.count--
	b.size -= len(r.Value)
}

// idIn is the key of a message in its mailbox: receiver and id.
func idIn(m message.Message) string {
	return receiverPrefix(string(m.Header.Receiver)) + string(m.Header.ID)
}

// receiverPrefix begins the names of the messages for one receiver.
func receiverPrefix(receiver string) string {
	sum := sha256.Sum256([]byte(receiver))
	return hex.EncodeToString(sum[:16]) + "/"
}

// recordName orders the messages for a receiver by their numbers.
func recordName(receiver string, n int64) string {
	return fmt.Sprintf("%s%019d", receiverPrefix(receiver), n)
}

// numberOf is the number in a record's name.
func numberOf(name string) int64 {
	_, digits, _ := strings.Cut(name, "/")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// put adds a message, unless it is there. Numbers begin at the time, so that a mailbox that
// was emptied does not repeat them.
func (all *mailboxes) put(ctx context.Context, c gateway.Caller, m message.Message, text []byte) (duplicate bool, err error) {
	sum, err := digest(m)
	if err != nil {
		return false, err
	}
	key := mailboxKey(c)
	b, err := all.box(ctx, key)
	if err != nil {
		return false, err
	}
	defer b.mu.Unlock()
	before, known, err := all.find(ctx, key, b, idIn(m))
	switch {
	case err != nil:
		return false, err
	case known && before.digest == sum:
		return true, nil
	case known:
		return false, fmt.Errorf("another message has the id %.200q: %w", m.Header.ID, gateway.ErrConflict)
	case len(text) > state.MaxValue:
		return false, gateway.Refuse("%s has no url, and a message of %d bytes is too large for its mailbox, which takes %d", c.Realm, len(text), state.MaxValue)
	case b.count >= maxMailboxMessages || b.size+len(text) > maxMailboxBytes:
		b.loaded = false // some may have expired
		return false, fmt.Errorf("%s does not fetch its messages: its mailbox is full: %w", c.Realm, gateway.ErrBusy)
	}
	b.last = max(b.last+1, time.Now().UnixMicro())
	key.Name = recordName(string(m.Header.Receiver), b.last)
	r := state.Record{Key: key, Value: text, Expires: time.Now().Add(mailboxLife)}
	if _, err := all.store.Put(ctx, r); err != nil {
		b.loaded = false // it may be there
		return false, err
	}
	b.add(r)
	close(b.changed)
	b.changed = make(chan struct{})
	return false, nil
}

// find returns what a mailbox has of a message. One that the store has not any more, as its
// time is over or its tenant was erased, is forgotten.
func (all *mailboxes) find(ctx context.Context, key state.Key, b *mailbox, id string) (m mailed, known bool, err error) {
	if m, known = b.messages[id]; !known {
		return m, false, nil
	}
	key.Name = m.name
	if _, err = all.store.Get(ctx, key); !errors.Is(err, state.ErrNotFound) {
		return m, err == nil, err
	}
	delete(b.messages, id)
	b.count--
	b.size -= m.size
	return m, false, nil
}

// read removes the messages for a receiver up to a number and returns those after it, as
// many as fit into one answer. changed is closed by the next message.
func (all *mailboxes) read(ctx context.Context, c gateway.Caller, receiver string, after int64) (list []state.Record, changed <-chan struct{}, err error) {
	key := mailboxKey(c)
	b, err := all.box(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	defer b.mu.Unlock()
	from := key
	from.Name = receiverPrefix(receiver)
	size := 0
	for {
		page, err := all.store.List(ctx, key, from, mailboxPage)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range page {
			from = r.Key
			switch {
			case !strings.HasPrefix(r.Key.Name, receiverPrefix(receiver)):
				return list, b.changed, nil
			case numberOf(r.Key.Name) <= after:
				if err := all.store.Delete(ctx, r.Key, r.Version); err != nil {
					return nil, nil, err
				}
				b.remove(r)
				continue
			}
			if size += len(r.Value); len(list) == mailboxPage || size > maxMailboxAnswer {
				return list, b.changed, nil
			}
			list = append(list, r)
		}
		if len(page) < mailboxPage {
			return list, b.changed, nil
		}
	}
}

// mailboxOf returns the caller of a request and the agent whose mailbox it reads. ok is
// false after a refusal.
func (g *Gateway) mailboxOf(w http.ResponseWriter, r *http.Request) (c gateway.Caller, receiver string, ok bool) {
	c, err := g.Runtime.Identify(r)
	if err != nil {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return c, "", false
	}
	receiver = r.URL.Query().Get("receiver")
	if err := g.checkSender(c, receiver); err != nil {
		g.refuse(w, c, incoming{}, err)
		return c, "", false
	}
	return c, receiver, true
}

// serveMailbox serves the messages that wait for one agent of a realm.
func (g *Gateway) serveMailbox(w http.ResponseWriter, r *http.Request) {
	c, receiver, ok := g.mailboxOf(w, r)
	if !ok {
		return
	}
	after, err := strconv.ParseInt(cmp.Or(r.URL.Query().Get("after"), "0"), 10, 64)
	seconds, err2 := strconv.Atoi(cmp.Or(r.URL.Query().Get("wait"), "0"))
	if err != nil || err2 != nil || seconds < 0 {
		http.Error(w, "after must be the next of an answer before, and wait a number of seconds", http.StatusBadRequest)
		return
	}
	ctx, stop := context.WithTimeoutCause(r.Context(), min(time.Duration(min(seconds, 1<<20))*time.Second, g.Hold), gateway.ErrHeld)
	defer stop()
	for {
		list, changed, err := g.mailbox.read(r.Context(), c, receiver, after)
		if err != nil {
			f := g.faultOf(err)
			http.Error(w, f.text, f.httpStatus())
			return
		}
		if len(list) > 0 {
			writeMailbox(w, list, after)
			return
		}
		select {
		case <-changed:
		case <-g.stopped:
			writeMailbox(w, nil, after)
			return
		case <-ctx.Done():
			if r.Context().Err() != nil {
				http.Error(w, "Unauthorized", http.StatusUnauthorized)
				return
			}
			writeMailbox(w, nil, after)
			return
		}
	}
}

// writeMailbox writes messages as they were put.
func writeMailbox(w http.ResponseWriter, list []state.Record, after int64) {
	answer := struct {
		Messages []json.RawMessage `json:"messages"`
		Next     string            `json:"next"`
	}{Messages: []json.RawMessage{}}
	for _, r := range list {
		answer.Messages = append(answer.Messages, r.Value)
		after = numberOf(r.Key.Name)
	}
	answer.Next = strconv.FormatInt(after, 10)
	w.Header().Set("Content-Type", jsonContentType)
	_ = json.NewEncoder(w).Encode(answer) // the caller may have left
}

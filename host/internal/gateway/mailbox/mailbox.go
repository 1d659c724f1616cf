package mailbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
)

// kind is the kind of the records.
const kind = "mailbox"

// Limits of a realm's mailbox, and of one answer with messages of it.
const (
	MaxMessages = 1000
	maxBytes    = 16 << 20
	page        = 100     // messages
	maxAnswer   = 4 << 20 // bytes
	life        = 30 * 24 * time.Hour
)

// Entry is what is known of a message.
type Entry struct {
	Receiver, ID string
	// Digest is of all that a repeat under the ID must have too.
	Digest [sha256.Size]byte
}

// Boxes keep the messages of a gateway. A message stays until its receiver has read past it.
// They are safe for concurrent use.
type Boxes struct {
	store   state.Store
	gateway string
	read    func(text []byte) (Entry, error)
	mu      sync.Mutex
	boxes   map[state.Key]*box // by their key without a name
}

// box is what is known of a realm's messages in the store.
type box struct {
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

// New returns the mailboxes of a gateway in a store. read reads a stored message.
func New(store state.Store, gateway string, read func(text []byte) (Entry, error)) *Boxes {
	return &Boxes{store: store, gateway: gateway, read: read, boxes: map[state.Key]*box{}}
}

func (all *Boxes) key(c gateway.Caller) state.Key {
	return state.Key{Tenant: c.Principal.Tenant, Gateway: all.gateway, Realm: c.Realm, Kind: kind}
}

// load returns the loaded mailbox of a realm, locked.
func (all *Boxes) load(ctx context.Context, key state.Key) (*box, error) {
	all.mu.Lock()
	b := all.boxes[key]
	if b == nil {
		b = &box{changed: make(chan struct{})}
		all.boxes[key] = b
	}
	all.mu.Unlock()
	b.mu.Lock()
	if b.loaded {
		return b, nil
	}
	b.count, b.size, b.messages = 0, 0, map[string]mailed{}
	for after := (state.Key{}); ; {
		list, err := all.store.List(ctx, key, after, page)
		if err != nil {
			b.mu.Unlock()
			return nil, err
		}
		for _, r := range list {
			all.add(b, r)
			after = r.Key
		}
		if len(list) < page {
			b.loaded = true
			return b, nil
		}
	}
}

func (all *Boxes) add(b *box, r state.Record) {
	if e, err := all.read(r.Value); err == nil {
		b.messages[recordOf(r, e)] = mailed{e.Digest, r.Key.Name, len(r.Value)}
	}
	b.count++
	b.size += len(r.Value)
	b.last = max(b.last, Number(r.Key.Name))
}

// remove forgets a record. One that is not known any more is not counted: an erasure can come
// between its reading and its removal, and another message have its id.
func (all *Boxes) remove(b *box, r state.Record) {
	if e, err := all.read(r.Value); err == nil {
		name := recordOf(r, e)
		if b.messages[name].name != r.Key.Name {
			return
		}
		delete(b.messages, name)
	}
	b.count--
	b.size -= len(r.Value)
}

// nameOf is the key of a message in its mailbox.
func nameOf(e Entry) string { return receiverPrefix(e.Receiver) + e.ID }

// recordOf is nameOf for a record, whose receiver is in its name: a message to a group is
// addressed to the group, and kept for each member.
func recordOf(r state.Record, e Entry) string {
	receiver, _, _ := strings.Cut(r.Key.Name, "/")
	return receiver + "/" + e.ID
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

// Number is the number in the name of a record: a later message of a receiver has a greater
// one.
func Number(name string) int64 {
	_, digits, _ := strings.Cut(name, "/")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Put adds a message, unless it is there. Numbers begin at the time, so that a mailbox that
// was emptied does not repeat them. It returns [gateway.ErrConflict] for another message under
// a used ID, and [gateway.ErrBusy] when the mailbox is full.
func (all *Boxes) Put(ctx context.Context, c gateway.Caller, e Entry, text []byte) (duplicate bool, err error) {
	key := all.key(c)
	b, err := all.load(ctx, key)
	if err != nil {
		return false, err
	}
	defer b.mu.Unlock()
	before, known, err := all.find(ctx, key, b, nameOf(e))
	switch {
	case err != nil:
		return false, err
	case known && before.digest == e.Digest:
		return true, nil
	case known:
		return false, fmt.Errorf("another message has the id %.200q: %w", e.ID, gateway.ErrConflict)
	case len(text) > state.MaxValue:
		return false, gateway.Refuse("a message of %d bytes is too large for the mailbox of %s, which takes %d", len(text), c.Realm, state.MaxValue)
	case b.count >= MaxMessages || b.size+len(text) > maxBytes:
		b.loaded = false // some may have expired
		return false, fmt.Errorf("%s does not fetch its messages: its mailbox is full: %w", c.Realm, gateway.ErrBusy)
	}
	b.last = max(b.last+1, time.Now().UnixMicro())
	key.Name = recordName(e.Receiver, b.last)
	r := state.Record{Key: key, Value: text, Expires: time.Now().Add(life)}
	if _, err := all.store.Put(ctx, r); err != nil {
		b.loaded = false // it may be there
		return false, err
	}
	all.add(b, r)
	close(b.changed)
	b.changed = make(chan struct{})
	return false, nil
}

// find returns what a mailbox has of a message. One that the store has not any more, as its
// time is over or its tenant was erased, is forgotten.
func (all *Boxes) find(ctx context.Context, key state.Key, b *box, id string) (m mailed, known bool, err error) {
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

// Read removes the messages for a receiver up to a number and returns those after it, as
// many as fit into one answer. changed is closed by the next message.
func (all *Boxes) Read(ctx context.Context, c gateway.Caller, receiver string, after int64) (list []state.Record, changed <-chan struct{}, err error) {
	key := all.key(c)
	b, err := all.load(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	defer b.mu.Unlock()
	from := key
	from.Name = receiverPrefix(receiver)
	size := 0
	for {
		records, err := all.store.List(ctx, key, from, page)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range records {
			from = r.Key
			switch {
			case !strings.HasPrefix(r.Key.Name, receiverPrefix(receiver)):
				return list, b.changed, nil
			case Number(r.Key.Name) <= after:
				if err := all.store.Delete(ctx, r.Key, r.Version); err != nil {
					return nil, nil, err
				}
				all.remove(b, r)
				continue
			}
			if size += len(r.Value); len(list) == page || size > maxAnswer {
				return list, b.changed, nil
			}
			list = append(list, r)
		}
		if len(records) < page {
			return list, b.changed, nil
		}
	}
}

// Remove removes a message that [Boxes.Read] has returned.
func (all *Boxes) Remove(ctx context.Context, c gateway.Caller, r state.Record) error {
	b, err := all.load(ctx, all.key(c))
	if err != nil {
		return err
	}
	defer b.mu.Unlock()
	if err = all.store.Delete(ctx, r.Key, 0); err == nil {
		all.remove(b, r)
	}
	return err
}

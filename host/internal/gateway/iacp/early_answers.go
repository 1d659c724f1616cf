package iacp

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
)

// Limits of [earlyAnswers] of a connection and of a realm. A single answer may be larger.
const (
	maxEarly             = 64
	maxEarlyBytes        = 4 << 20
	maxEarlyOfRealm      = 256
	maxEarlyBytesOfRealm = 16 << 20
)

// errNoQuestion is returned for an answer to which there is no question.
var errNoQuestion = fmt.Errorf("parent_message_id names no message that waits: %w", gateway.ErrUnknown)

// earlyAnswers keep answers to questions that no attempt waits for: after a restart of the host a
// peer may send its answers again before the host sends the questions again, and need not answer
// a repeat after an acknowledgement. They are safe for concurrent use.
type earlyAnswers struct {
	mu sync.Mutex
	// byID has one answer of each sender, the oldest first.
	byID    map[waitKey][]*earlyAnswer
	byConn  map[*conn]usage
	byRealm map[realmKey]usage
}

// usage is how many answers are kept, and their bytes.
type usage struct{ count, bytes int }

// hasRoom reports whether an answer of some bytes may be added.
func (u usage) hasRoom(bytes, most, mostBytes int) bool {
	return u.count == 0 || u.count < most && u.bytes+bytes <= mostBytes
}

// earlyAnswer is an answer that is kept for its question while its connection lasts, for the
// partner's timeout at most: so long a question waits for its answer.
type earlyAnswer struct {
	c      *conn
	caller gateway.Caller
	early
	// ack acknowledges it when the question is not sent in time, and the answer stays until expiry
	// removes it.
	ack, expiry *time.Timer
}

func newEarlyAnswers() *earlyAnswers {
	return &earlyAnswers{byID: map[waitKey][]*earlyAnswer{}, byConn: map[*conn]usage{}, byRealm: map[realmKey]usage{}}
}

// keep keeps an answer for its question, and reports whether it has. An answer that is no end, or
// that allows a repeat of the question, is not kept.
func (all *earlyAnswers) keep(c *conn, caller gateway.Caller, m message.Message, text []byte) bool {
	var r result
	if json.Unmarshal(m.Payload, &r) != nil || r.Status == "accepted" || r.Status == "in_progress" || m.Type == message.ErrorResponse && r.Retry {
		return false
	}
	p, isPartner := c.g.Runtime.Partner(caller.Realm)
	if !isPartner { // it is asked nothing
		return false
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	key := waitKey{realmOf(caller), m.Parent}
	if slices.ContainsFunc(all.byID[key], func(kept *earlyAnswer) bool { return kept.Sender.ID == m.Sender.ID }) || !all.byConn[c].hasRoom(len(text), maxEarly, maxEarlyBytes) || !all.byRealm[key.realm].hasRoom(len(text), maxEarlyOfRealm, maxEarlyBytesOfRealm) {
		return false
	}
	kept := &earlyAnswer{c: c, caller: caller, early: early{m, text}}
	kept.ack = time.AfterFunc(c.g.Ack/5, func() {
		c.g.record(caller, m, text, gateway.Exchange{}, errNoQuestion)
		c.acknowledge(m)
	})
	kept.expiry = time.AfterFunc(max(p.Timeout, c.g.Ack), func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		all.remove(key, kept)
	})
	all.byID[key] = append(all.byID[key], kept)
	all.count(key.realm, c, 1, len(text))
	return true
}

// count adds to what a connection and its realm keep. all.mu is held.
func (all *earlyAnswers) count(realm realmKey, c *conn, count, bytes int) {
	addUsage(all.byConn, c, count, bytes)
	addUsage(all.byRealm, realm, count, bytes)
}

// addUsage adds to what a key keeps, and forgets one that keeps nothing.
func addUsage[K comparable](all map[K]usage, key K, count, bytes int) {
	u := all[key]
	if u.count, u.bytes = u.count+count, u.bytes+bytes; u.count == 0 {
		delete(all, key)
	} else {
		all[key] = u
	}
}

// remove removes an answer, if it is kept. all.mu is held.
func (all *earlyAnswers) remove(key waitKey, kept *earlyAnswer) {
	n := slices.Index(all.byID[key], kept)
	if n < 0 {
		return
	}
	kept.ack.Stop()
	kept.expiry.Stop()
	if all.byID[key] = slices.Delete(all.byID[key], n, n+1); len(all.byID[key]) == 0 {
		delete(all.byID, key)
	}
	all.count(key.realm, kept.c, -1, -len(kept.text))
}

// bring delivers the answers to a question that is about to be sent again, as they have come: one of
// another agent than the asked one is refused then.
func (all *earlyAnswers) bring(c gateway.Caller, id string) {
	all.mu.Lock()
	key := waitKey{realmOf(c), id}
	list := slices.Clone(all.byID[key])
	for _, kept := range list {
		all.remove(key, kept)
	}
	all.mu.Unlock()
	for _, kept := range list {
		kept.c.answered(kept.caller, kept.Message, kept.text)
	}
}

// leave forgets the answers of a connection that has ended: its peer sends them again.
func (all *earlyAnswers) leave(c *conn) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.byConn[c].count == 0 {
		return
	}
	for key, list := range all.byID {
		for _, kept := range slices.Clone(list) {
			if kept.c == c {
				all.remove(key, kept)
			}
		}
	}
}

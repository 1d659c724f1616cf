package iacp

import (
	"fmt"
	"maps"
	"math/bits"
	"sync"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
)

// An agent that has failed tripAfter questions in a row, or tripShare of the last tripWindow, gets
// none for a while, and then one as a probe (I-075).
const (
	tripAfter  = 5
	tripWindow = 20
	tripShare  = 10
	// probeTime is how long a probe keeps other questions back.
	probeTime = 2 * time.Second
	// maxBreakers bounds the agents whose failures are counted.
	maxBreakers = 10_000
)

// breakers are the circuit breakers of agents. They are apart from the router's breaker of a
// partner, which is about its connection. Make them with [newBreakers].
type breakers struct {
	// first is how long a breaker is open at first, and after each failed probe twice as long.
	first time.Duration

	mu      sync.Mutex
	byAgent map[breakerKey]*breaker
}

// breakerKey is an agent as one realm meets it: ours, with its swarm, for questions of the realm, and
// one of the realm for ours.
type breakerKey struct {
	realm        realmKey
	swarm, agent string
}

// breaker counts the failures of an agent.
type breaker struct {
	// results are the last questions, the newest in the lowest bit: 1 has failed.
	results uint32
	openFor time.Duration
	// until is when it is probed, zero while it is closed.
	until, probeUntil time.Time
	// acknowledged counts the messages without an answer since the last failure.
	acknowledged int
}

func newBreakers(first time.Duration) *breakers {
	return &breakers{first: first, byAgent: map[breakerKey]*breaker{}}
}

// admit returns after which time an agent is asked again, 0 for now: that question is the probe
// of an open breaker.
func (all *breakers) admit(key breakerKey, now time.Time) time.Duration {
	all.mu.Lock()
	defer all.mu.Unlock()
	b := all.byAgent[key]
	switch {
	case b == nil || b.until.IsZero():
		return 0
	case now.Before(b.until):
		return b.until.Sub(now)
	case now.Before(b.probeUntil):
		return b.probeUntil.Sub(now)
	}
	b.probeUntil = now.Add(probeTime)
	return 0
}

// isOpen reports whether an agent is not asked now.
func (all *breakers) isOpen(key breakerKey, now time.Time) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	b := all.byAgent[key]
	return b != nil && (now.Before(b.until) || now.Before(b.probeUntil))
}

// record notes how a question to an agent has ended. What fails while its breaker is open was
// asked before, and does not prolong it.
func (all *breakers) record(key breakerKey, failed bool, now time.Time) {
	all.mu.Lock()
	defer all.mu.Unlock()
	b := all.byAgent[key]
	if b == nil {
		if !failed || !all.makeRoom(now) {
			return
		}
		b = &breaker{}
		all.byAgent[key] = b
	}
	b.results <<= 1
	if failed {
		b.results |= 1
		b.acknowledged = 0
	}
	b.results &= 1<<tripWindow - 1
	switch open := !b.until.IsZero(); {
	case !failed && (open || b.results == 0):
		delete(all.byAgent, key)
	case failed && (b.trips() || open) && !now.Before(b.until):
		b.openFor = min(max(2*b.openFor, all.first), lastPause)
		b.until, b.probeUntil = now.Add(b.openFor), time.Time{}
	}
}

// recordTell ends a probe with a message that wants no answer, and hides no failed question by it.
// Five acknowledged messages in a row after the rest close the breaker.
func (all *breakers) recordTell(key breakerKey, acknowledged bool, now time.Time) {
	all.mu.Lock()
	defer all.mu.Unlock()
	b := all.byAgent[key]
	if b == nil {
		return
	}
	b.probeUntil = time.Time{}
	if !acknowledged || b.until.IsZero() || now.Before(b.until) {
		return
	}
	if b.acknowledged++; b.acknowledged >= tripAfter {
		delete(all.byAgent, key)
	}
}

func (b *breaker) trips() bool {
	const row = 1<<tripAfter - 1
	return b.results&row == row || bits.OnesCount32(b.results) >= tripShare
}

// isAboutBegun reports whether a message is about work that its agent has begun. An open breaker
// keeps it back no more than the work: it is let through, and does not count.
func isAboutBegun(t message.Type) bool {
	return t == message.WorkflowStatus || t == message.WorkflowCancel
}

// makeRoom reports whether there is room for one more agent: closed breakers leave, and open ones
// whose agents are not asked for long after their rest. all.mu is held.
func (all *breakers) makeRoom(now time.Time) bool {
	if len(all.byAgent) >= maxBreakers {
		long := now.Add(-lastPause)
		maps.DeleteFunc(all.byAgent, func(_ breakerKey, b *breaker) bool { return b.until.Before(long) })
	}
	return len(all.byAgent) < maxBreakers
}

// circuitOpenError is returned for a message to an agent that is not asked now.
type circuitOpenError struct {
	agent string
	after time.Duration
}

// Error implements error.
func (e *circuitOpenError) Error() string {
	return fmt.Sprintf("the agent %q has failed too often and is asked again in %s", e.agent, seconds(e.after.Round(time.Millisecond)))
}

// failureOf reports whether an outcome is a failure of the agent; counts is false for a
// cancelled question.
func failureOf(o gateway.Outcome) (failed, counts bool) {
	return o == gateway.Failed || o == gateway.TimedOut, o != gateway.Cancelled
}

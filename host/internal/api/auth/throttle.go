package auth

import (
	"crypto/sha256"
	"sync"
	"time"
)

// Throttle limits failed authentication per address. Beyond the limit no token
// from the address is checked, valid or not, except those that were valid from
// there before: clients that share an address with an attacker keep working. It
// is safe for concurrent use.
type Throttle struct {
	max      int
	rejected *Limiter
	accepted *RecentMap[attempt, struct{}]

	mu sync.Mutex
	// checking holds the tokens that are being checked, by address.
	checking map[string]map[attempt]*check
}

type attempt struct {
	address string
	token   [sha256.Size]byte
}

// check is one token from one address that is being checked.
type check struct {
	callers int
	charged bool
}

// Outcome is the result of checking a token.
type Outcome int

// Undetermined means that no backend could check the token. It costs nothing and
// is not remembered.
const (
	Undetermined Outcome = iota
	Accepted
	Rejected
)

// How long, and for how many tokens, it is remembered that a token was valid from
// an address.
const (
	acceptedTTL = time.Hour
	maxAccepted = 1 << 15
)

// busyRetry is the wait while too many tokens of an address are being checked.
const busyRetry = time.Second

// NewThrottle allows each address a rate of failures. A nil now means [time.Now].
func NewThrottle(rate Rate, now func() time.Time) *Throttle {
	return &Throttle{
		max: rate.Requests, rejected: NewLimiter(rate, now),
		accepted: NewRecentMap[attempt, struct{}](acceptedTTL, maxAccepted, now),
		checking: map[string]map[attempt]*check{},
	}
}

// BeginCheck reports whether a token from an address may be checked, or how long
// to wait. An allowed caller calls done once with the outcome. A rejected token
// is charged once, however many callers show it. An address may have as many
// tokens checked at once as all hosts together allow failures; what they overdraw
// extends the wait.
func (g *Throttle) BeginCheck(address, token string) (done func(Outcome), wait time.Duration, ok bool) {
	try := attempt{address, sha256.Sum256([]byte(token))}
	if _, before := g.accepted.Get(try); before {
		return func(o Outcome) {
			if o == Rejected {
				g.accepted.Delete(try)
			}
		}, 0, true
	}
	if wait, ok := g.rejected.Check(address); !ok {
		return nil, wait, false
	}
	t := g.beginAttempt(try)
	if t == nil {
		return nil, busyRetry, false
	}
	return func(o Outcome) { g.endAttempt(try, t, o) }, 0, true
}

// beginAttempt counts a check in; nil means that too many are in progress.
func (g *Throttle) beginAttempt(try attempt) *check {
	g.mu.Lock()
	defer g.mu.Unlock()
	here := g.checking[try.address]
	t := here[try]
	if t == nil {
		if g.max > 0 && len(here) >= g.max {
			return nil
		}
		if here == nil {
			here = map[attempt]*check{}
			g.checking[try.address] = here
		}
		t = &check{}
		here[try] = t
	}
	t.callers++
	return t
}

func (g *Throttle) endAttempt(try attempt, t *check, o Outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case o == Accepted:
		g.accepted.Put(try, struct{}{})
	case o == Rejected && !t.charged:
		t.charged = true
		g.rejected.Charge(try.address)
	}
	if t.callers--; t.callers > 0 {
		return
	}
	if delete(g.checking[try.address], try); len(g.checking[try.address]) == 0 {
		delete(g.checking, try.address)
	}
}

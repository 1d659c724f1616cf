package auth

import (
	"crypto/sha256"
	"sync"
	"time"

	"skep/host/internal/recent"
)

// Guesses slows those who try tokens. Each address may be wrong so often within
// a span; beyond it nothing from there is looked at, not even what would be
// right, but for tokens that were right from there before: whoever shares an
// address with a guesser goes on. It is safe for concurrent use.
type Guesses struct {
	most  int
	wrong *Limiter
	right *recent.Map[guess, struct{}]

	mu sync.Mutex
	// trying are the tokens that are being looked at, by address.
	trying map[string]map[guess]*trial
}

type guess struct {
	address string
	token   [sha256.Size]byte
}

// trial is one token from one address that somebody looks at.
type trial struct {
	callers int
	charged bool
}

// Outcome is what came of looking at a token.
type Outcome int

// The outcomes. Untold is that of a token of which nobody could tell whether it
// is right: it costs nothing, and nothing is learned from it.
const (
	Untold Outcome = iota
	Right
	Wrong
)

// How long, and of how many, it is remembered that a token was right from an
// address.
const (
	rememberRight = time.Hour
	maxRight      = 1 << 15
)

// crowded is when to come again while an address has too many tokens looked at.
const crowded = time.Second

// NewGuesses lets each address be wrong at a rate. A nil now means [time.Now].
func NewGuesses(rate Rate, now func() time.Time) *Guesses {
	return &Guesses{
		most: rate.Requests, wrong: NewLimiter(rate, now),
		right:  recent.New[guess, struct{}](rememberRight, maxRight, now),
		trying: map[string]map[guess]*trial{},
	}
}

// Try says whether a token from an address may be looked at, and if not, when
// it may be. Whoever was allowed calls done once with what came of it. A guess is
// paid for when it was wrong. As many tokens as an address may be wrong are
// looked at in one moment, however many callers show each of them; what they
// overdraw keeps the address out for longer.
func (g *Guesses) Try(address, token string) (done func(Outcome), wait time.Duration, ok bool) {
	try := guess{address, sha256.Sum256([]byte(token))}
	if _, before := g.right.Get(try); before {
		return func(o Outcome) {
			if o == Wrong {
				g.right.Drop(try)
			}
		}, 0, true
	}
	if wait, ok := g.wrong.Room(address); !ok {
		return nil, wait, false
	}
	t := g.begin(try)
	if t == nil {
		return nil, crowded, false
	}
	return func(o Outcome) { g.end(try, t, o) }, 0, true
}

// begin notes that a token is looked at; nil means that there is no room.
func (g *Guesses) begin(try guess) *trial {
	g.mu.Lock()
	defer g.mu.Unlock()
	here := g.trying[try.address]
	t := here[try]
	if t == nil {
		if g.most > 0 && len(here) >= g.most {
			return nil
		}
		if here == nil {
			here = map[guess]*trial{}
			g.trying[try.address] = here
		}
		t = &trial{}
		here[try] = t
	}
	t.callers++
	return t
}

func (g *Guesses) end(try guess, t *trial, o Outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case o == Right:
		g.right.Put(try, struct{}{})
	case o == Wrong && !t.charged:
		t.charged = true
		g.wrong.Charge(try.address)
	}
	if t.callers--; t.callers > 0 {
		return
	}
	if delete(g.trying[try.address], try); len(g.trying[try.address]) == 0 {
		delete(g.trying, try.address)
	}
}

package auth

import (
	"crypto/sha256"
	"time"

	"skep/host/internal/recent"
)

// Guesses slows those who try tokens. Each address may be wrong so often within
// a span; beyond it nothing from there is looked at, not even what would be
// right, but for tokens that were right from there before: whoever shares an
// address with a guesser goes on.
type Guesses struct {
	wrong *Limiter
	right *recent.Map[guess, struct{}]
}

type guess struct {
	address string
	token   [sha256.Size]byte
}

// How long, and of how many, it is remembered that a token was right from an
// address.
const (
	rememberRight = time.Hour
	maxRight      = 1 << 15
)

// NewGuesses lets each address be wrong at a rate. A nil now means [time.Now].
func NewGuesses(rate Rate, now func() time.Time) *Guesses {
	return &Guesses{NewLimiter(rate, now), recent.New[guess, struct{}](rememberRight, maxRight, now)}
}

// Try says whether a token from an address may be looked at, and if not, when
// it may be. Whoever was allowed calls done with what came of it.
func (g *Guesses) Try(address, token string) (done func(wrong bool), wait time.Duration, ok bool) {
	try := guess{address, sha256.Sum256([]byte(token))}
	_, before := g.right.Get(try)
	if !before {
		if wait, ok := g.wrong.Allow(address); !ok {
			return nil, wait, false
		}
	}
	return func(wrong bool) {
		switch {
		case wrong && before:
			g.right.Drop(try)
		case !wrong && !before:
			g.wrong.Return(address)
			g.right.Put(try, struct{}{})
		}
	}, 0, true
}

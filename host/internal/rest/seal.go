package rest

import "time"

// Seals knows which swarms sign what they send. It is safe for concurrent use.
type Seals interface {
	// Verify says why a wrapper, one JSON object, is not what the swarm it comes
	// from has just signed for this route of the swarm it goes to. It is nil for a
	// swarm that need not sign.
	Verify(wrapper []byte, from, to string, back bool, now time.Time) error
}

// noSeals is for handlers that were given none.
type noSeals struct{}

func (noSeals) Verify([]byte, string, string, bool, time.Time) error { return nil }

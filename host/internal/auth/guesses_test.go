package auth

import (
	"fmt"
	"testing"
	"time"
)

// Whoever guesses is slowed; whoever was right from the same address goes on.
func TestGuesses(t *testing.T) {
	t.Parallel()
	clock := &ticker{at: time.Unix(1e9, 0)}
	g := NewGuesses(Rate{Requests: 3, Per: time.Minute}, clock.now)
	try := func(address, token string, wrong, want bool) {
		t.Helper()
		done, wait, ok := g.Try(address, token)
		if ok != want || !ok && wait != 20*time.Second {
			t.Errorf("%s from %s: %v, wait %v", token, address, ok, wait)
		}
		if ok {
			done(wrong)
		}
	}
	try("a", "good", false, true)
	for i := range 3 {
		try("a", fmt.Sprint("bad", i), true, true)
	}
	try("a", "bad", true, false)
	try("a", "other good", false, false) // which it would have been
	try("a", "good", false, true)
	try("b", "other good", false, true)
	for range 10 {
		try("b", "good", false, true) // what is right costs nothing
	}
	try("a", "good", true, true) // it is revoked
	try("a", "good", true, false)
	clock.move(20 * time.Second)
	try("a", "bad", true, true)
	try("a", "bad", true, false)
}

func TestGuessesOff(t *testing.T) {
	t.Parallel()
	g := NewGuesses(Rate{}, nil)
	for range 1000 {
		done, _, ok := g.Try("a", "bad")
		if !ok {
			t.Fatal("it is refused")
		}
		done(true)
	}
}

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
		switch {
		case ok && wrong:
			done(Wrong)
		case ok:
			done(Right)
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
		done(Wrong)
	}
}

// A token of which nobody can tell costs nothing, and opens nothing later.
func TestUntoldGuesses(t *testing.T) {
	t.Parallel()
	g := NewGuesses(Rate{Requests: 2, Per: time.Hour}, nil)
	try := func(token string, o Outcome) bool {
		done, _, ok := g.Try("a", token)
		if ok {
			done(o)
		}
		return ok
	}
	for i := range 10 {
		if !try(fmt.Sprint("guess", i), Untold) {
			t.Fatalf("guess %d is not looked at", i)
		}
	}
	if !try("good", Right) || !try("good", Untold) {
		t.Error("what was right is not looked at")
	}
	try("bad", Wrong)
	try("bad", Wrong)
	for i := range 10 {
		if try(fmt.Sprint("guess", i), Wrong) {
			t.Errorf("guess %d is looked at", i)
		}
	}
	if !try("good", Right) {
		t.Error("what was right before an outage is not looked at")
	}
}

// A token is one guess however many callers show it in one moment, and no more
// are looked at than may be wrong.
func TestGuessesUnderWay(t *testing.T) {
	t.Parallel()
	clock := &ticker{at: time.Unix(1e9, 0)}
	g := NewGuesses(Rate{Requests: 3, Per: time.Minute}, clock.now)
	begin := func(token string) func(Outcome) {
		done, wait, ok := g.Try("a", token)
		if !ok && wait != time.Second {
			t.Errorf("%s: come again in %v", token, wait)
		}
		return done
	}
	var under []func(Outcome)
	for _, token := range []string{"one", "two", "three"} {
		for range 20 {
			under = append(under, begin(token))
		}
	}
	if begin("four") != nil {
		t.Error("a fourth token is looked at")
	}
	if done, _, ok := g.Try("b", "four"); !ok {
		t.Error("another address has to wait")
	} else {
		done(Right)
	}
	for i, done := range under {
		done(map[bool]Outcome{true: Right, false: Wrong}[i < 20])
	}
	if len(g.trying) != 0 {
		t.Errorf("%d addresses are under way", len(g.trying))
	}
	// Two tokens were wrong, so one guess is left.
	if done := begin("five"); done == nil {
		t.Error("a third guess is not looked at")
	} else {
		done(Wrong)
	}
	if _, wait, ok := g.Try("a", "six"); ok || wait != 20*time.Second {
		t.Errorf("a fourth guess: %v, %v", ok, wait)
	}
}

// What is overdrawn in one moment is paid for.
func TestGuessesOverdrawn(t *testing.T) {
	t.Parallel()
	clock := &ticker{at: time.Unix(1e9, 0)}
	g := NewGuesses(Rate{Requests: 2, Per: time.Minute}, clock.now)
	done, _, _ := g.Try("a", "one")
	done(Wrong)
	var under []func(Outcome)
	for _, token := range []string{"two", "three"} {
		done, _, ok := g.Try("a", token)
		if !ok {
			t.Fatalf("%s is not looked at", token)
		}
		under = append(under, done)
	}
	for _, done := range under {
		done(Wrong)
	}
	if _, wait, ok := g.Try("a", "four"); ok || wait != time.Minute {
		t.Errorf("four: %v, %v", ok, wait)
	}
}

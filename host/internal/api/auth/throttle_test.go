package auth

import (
	"fmt"
	"testing"
	"time"
)

// Failed authentication is limited; a token that was valid from the same address
// still works.
func TestThrottle(t *testing.T) {
	t.Parallel()
	clock := &ticker{at: time.Unix(1e9, 0)}
	g := NewThrottle(Rate{Requests: 3, Per: time.Minute}, clock.now)
	try := func(address, token string, wrong, want bool) {
		t.Helper()
		done, wait, ok := g.BeginCheck(address, token)
		if ok != want || !ok && wait != 20*time.Second {
			t.Errorf("%s from %s: %v, wait %v", token, address, ok, wait)
		}
		switch {
		case ok && wrong:
			done(Rejected)
		case ok:
			done(Accepted)
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

func TestThrottleOff(t *testing.T) {
	t.Parallel()
	g := NewThrottle(Rate{}, nil)
	for range 1000 {
		done, _, ok := g.BeginCheck("a", "bad")
		if !ok {
			t.Fatal("it is refused")
		}
		done(Rejected)
	}
}

// A token that no backend could check costs nothing and is not remembered.
func TestThrottleUndetermined(t *testing.T) {
	t.Parallel()
	g := NewThrottle(Rate{Requests: 2, Per: time.Hour}, nil)
	try := func(token string, o Outcome) bool {
		done, _, ok := g.BeginCheck("a", token)
		if ok {
			done(o)
		}
		return ok
	}
	for i := range 10 {
		if !try(fmt.Sprint("guess", i), Undetermined) {
			t.Fatalf("guess %d is not looked at", i)
		}
	}
	if !try("good", Accepted) || !try("good", Undetermined) {
		t.Error("what was right is not looked at")
	}
	try("bad", Rejected)
	try("bad", Rejected)
	for i := range 10 {
		if try(fmt.Sprint("guess", i), Rejected) {
			t.Errorf("guess %d is looked at", i)
		}
	}
	if !try("good", Accepted) {
		t.Error("what was right before an outage is not looked at")
	}
}

// A token is one failure however many callers show it at once, and no more are
// checked than may fail.
func TestThrottleConcurrent(t *testing.T) {
	t.Parallel()
	clock := &ticker{at: time.Unix(1e9, 0)}
	g := NewThrottle(Rate{Requests: 3, Per: time.Minute}, clock.now)
	begin := func(token string) func(Outcome) {
		done, wait, ok := g.BeginCheck("a", token)
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
	if done, _, ok := g.BeginCheck("b", "four"); !ok {
		t.Error("another address has to wait")
	} else {
		done(Accepted)
	}
	for i, done := range under {
		done(map[bool]Outcome{true: Accepted, false: Rejected}[i < 20])
	}
	if len(g.checking) != 0 {
		t.Errorf("%d addresses are under way", len(g.checking))
	}
	// Two tokens failed, so one is left.
	if done := begin("five"); done == nil {
		t.Error("a third guess is not looked at")
	} else {
		done(Rejected)
	}
	if _, wait, ok := g.BeginCheck("a", "six"); ok || wait != 20*time.Second {
		t.Errorf("a fourth guess: %v, %v", ok, wait)
	}
}

// What is overdrawn in one moment is paid for.
func TestThrottleOverdrawn(t *testing.T) {
	t.Parallel()
	clock := &ticker{at: time.Unix(1e9, 0)}
	g := NewThrottle(Rate{Requests: 2, Per: time.Minute}, clock.now)
	done, _, _ := g.BeginCheck("a", "one")
	done(Rejected)
	var under []func(Outcome)
	for _, token := range []string{"two", "three"} {
		done, _, ok := g.BeginCheck("a", token)
		if !ok {
			t.Fatalf("%s is not looked at", token)
		}
		under = append(under, done)
	}
	for _, done := range under {
		done(Rejected)
	}
	if _, wait, ok := g.BeginCheck("a", "four"); ok || wait != time.Minute {
		t.Errorf("four: %v, %v", ok, wait)
	}
}

// TestThrottleOfHosts: hosts hold the bound of wrong credentials together.
func TestThrottleOfHosts(t *testing.T) {
	t.Parallel()
	g := NewThrottle(Rate{Requests: 4, Per: time.Hour, Hosts: func() int { return 2 }}, nil)
	guess := func(n int) (allowed int) {
		for i := range n {
			if done, _, ok := g.BeginCheck("1.2.3.4", fmt.Sprint(i)); ok {
				done(Rejected)
				allowed++
			}
		}
		return allowed
	}
	if n := guess(10); n != 2 {
		t.Errorf("one of two hosts checks %d wrong credentials, want 2", n)
	}
	for i := range 4 { // a balancer has one address
		if _, _, ok := g.BeginCheck("4.3.2.1", fmt.Sprint(i)); !ok {
			t.Errorf("check %d at once is refused", i)
		}
	}
	if _, _, ok := g.BeginCheck("4.3.2.1", "4"); ok {
		t.Error("more are checked at once than the bound")
	}
}

package contract

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// contractCase is one case of the contract.
type contractCase struct {
	// number begins the key of the case in [Protocol.Without].
	number, name string
	run          func(s *suite, t *testing.T)
}

// caller is a role in which a case runs.
type caller struct{ role, token string }

// Run holds a protocol against the contract: a subtest for each case, and for each of its
// parts. A case that the protocol cannot express is skipped with its reason.
func Run(t *testing.T, p Protocol) {
	t.Helper()
	s := newSuite(t, p, "")
	s.unused = keysOf(p.Without)
	var ran atomic.Int32
	t.Run("cases", func(t *testing.T) {
		for _, c := range cases() {
			t.Run(c.number+" "+c.name, func(t *testing.T) {
				t.Parallel()
				ran.Add(1)
				s.part(t, c.number, func() { c.run(s, t) })
			})
		}
	})
	for _, c := range lastCases() {
		t.Run(c.number+" "+c.name, func(t *testing.T) {
			ran.Add(1)
			c.run(s, t)
		})
	}
	s.checkWithout(t, int(ran.Load()) == len(cases())+len(lastCases()))
}

// checkWithout reports keys of Without that no case has met, if all cases ran: -run leaves
// some out.
func (s *suite) checkWithout(t *testing.T, all bool) {
	t.Helper()
	for key := range s.unused.keys {
		if all {
			t.Errorf("Without has %q, which is no case and no part of one", key)
		}
	}
	t.Logf("%s: %d of the cases and their parts cannot be expressed", s.p.Name, len(s.p.Without))
}

// part runs a case, or a part of one as 06/user, unless the protocol cannot express it.
func (s *suite) part(t *testing.T, key string, run func()) {
	t.Helper()
	reason, without := s.p.Without[key]
	if without {
		s.unused.mu.Lock()
		delete(s.unused.keys, key)
		s.unused.mu.Unlock()
		t.Skipf("%s cannot express it: %s", s.p.Name, reason)
	}
	run()
}

// roles runs a part of a case as a realm and as a user, where the protocol has them.
func (s *suite) roles(t *testing.T, number string, run func(t *testing.T, c caller)) {
	t.Helper()
	var list []caller
	if s.p.Realms {
		list = append(list, caller{"realm", depotToken})
	}
	if s.p.Users {
		list = append(list, caller{"user", aliceToken})
	}
	for _, c := range list {
		t.Run(c.role, func(t *testing.T) {
			s.part(t, number+"/"+c.role, func() { run(t, c) })
		})
	}
}

// wantText fails unless a message is done with a text.
func wantText(t *testing.T, got State, err error, want string) {
	t.Helper()
	if err != nil || got.Status != Done || got.Text != want {
		t.Fatalf("got %s %q, %v; want done %q: %s", got.Status, got.Text, err, want, got.Raw)
	}
}

// wantRefused fails unless an error is a refusal for one of some reasons.
func wantRefused(t *testing.T, err error, reasons ...Reason) *Refused {
	t.Helper()
	var refused *Refused
	if !errors.As(err, &refused) || !slices.Contains(reasons, refused.Reason) {
		t.Fatalf("got %v, want a refusal: %v", err, reasons)
	}
	return refused
}

// send sends a message and wants no error.
func send(t *testing.T, c Client, m Message) State {
	t.Helper()
	got, err := c.Send(t.Context(), m)
	if err != nil {
		t.Fatalf("send %s: %v", m.ID, err)
	}
	return got
}

// patience bounds what a case waits for; nothing is measured by it.
const patience = 5 * time.Minute

// until waits for a channel.
func until(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("never:", what)
	}
}

// settled waits until a condition holds.
func settled(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never:", what)
		}
	}
}

// id makes an id of a message, which names its test.
func id(t *testing.T, suffix string) string {
	t.Helper()
	name := strings.NewReplacer("/", "-", " ", "-", ",", "", "'", "").Replace(t.Name())
	if len(name) > 60 {
		name = fmt.Sprintf("%x", sha256.Sum256([]byte(name)))[:8] + name[len(name)-50:]
	}
	return strings.Trim(name, "-") + "-" + suffix
}

// later sends a message in the background.
func later(t *testing.T, c Client, m Message) <-chan sent {
	t.Helper()
	got := make(chan sent, 1)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(cancel)
	go func() {
		s, err := c.Send(ctx, m)
		got <- sent{s, err}
	}()
	return got
}

// sent is what came of a message.
type sent struct {
	State
	err error
}

// receive waits for a value.
func receive[T any](t *testing.T, what string, from <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(patience):
		t.Fatal("never:", what)
	}
	return got
}

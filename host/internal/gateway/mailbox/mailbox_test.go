package mailbox_test

import (
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/mailbox"
	"skep/host/internal/gateway/state"
)

// read reads a message of the test: "RECEIVER ID text".
func read(text []byte) (mailbox.Entry, error) {
	parts := strings.SplitN(string(text), " ", 3)
	if len(parts) != 3 {
		return mailbox.Entry{}, errors.New("no message")
	}
	return mailbox.Entry{Receiver: parts[0], ID: parts[1], Digest: sha256.Sum256([]byte(parts[2]))}, nil
}

// TestBoxes (A-041, I-028): messages are kept once each and in their order, for each receiver,
// and another mailbox on the same store has them, too.
func TestBoxes(t *testing.T) {
	t.Parallel()
	rt := gatewaytest.New()
	t.Cleanup(rt.Close)
	c := gatewaytest.Realm("acme", "depot")
	boxes := mailbox.New(rt.State(), "iacp", read)
	put := func(text string) (bool, error) {
		e, err := read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return boxes.Put(t.Context(), c, e, []byte(text))
	}
	for _, text := range []string{"a 1 x", "b 1 x", "a 2 y", "a 3 z"} {
		if again, err := put(text); again || err != nil {
			t.Fatalf("%s: %t, %v", text, again, err)
		}
		if again, err := put(text); !again || err != nil {
			t.Fatalf("%s again: %t, %v", text, again, err)
		}
	}
	if _, err := put("a 1 other"); !errors.Is(err, gateway.ErrConflict) {
		t.Errorf("other content: %v", err)
	}
	if _, err := put("a 4 " + strings.Repeat("x", state.MaxValue)); !errors.As(err, new(*gateway.Refusal)) {
		t.Errorf("a large message: %v", err)
	}
	boxes = mailbox.New(rt.State(), "iacp", read) // after a restart
	list, _, err := boxes.Read(t.Context(), c, "a", 0)
	if err != nil || len(list) != 3 || string(list[0].Value) != "a 1 x" || string(list[2].Value) != "a 3 z" {
		t.Fatalf("%d messages, %v", len(list), err)
	}
	if err := boxes.Remove(t.Context(), c, list[0]); err != nil {
		t.Fatal(err)
	}
	if again, err := put("a 2 y"); !again || err != nil {
		t.Errorf("what waits is repeated: %t, %v", again, err)
	}
	list, changed, err := boxes.Read(t.Context(), c, "a", mailbox.Number(list[1].Key.Name))
	if err != nil || len(list) != 1 || string(list[0].Value) != "a 3 z" {
		t.Fatalf("%d messages, %v", len(list), err)
	}
	if again, err := put("a 2 y"); again || err != nil { // it was read past
		t.Errorf("what was read is sent again: %t, %v", again, err)
	}
	<-changed
}

// TestBoxesKeepGroups (I-028): a message that names a group is kept once for each member.
func TestBoxesKeepGroups(t *testing.T) {
	t.Parallel()
	rt := gatewaytest.New()
	t.Cleanup(rt.Close)
	c := gatewaytest.Realm("acme", "depot")
	boxes := mailbox.New(rt.State(), "iacp", read)
	text := []byte("group 1 x")
	for _, again := range []bool{false, true} {
		for _, member := range []string{"a", "b"} {
			e := mailbox.Entry{Receiver: member, ID: "1", Digest: sha256.Sum256([]byte("x"))}
			if duplicate, err := boxes.Put(t.Context(), c, e, text); duplicate != again || err != nil {
				t.Errorf("for %s: duplicate %t, %v; want %t", member, duplicate, err, again)
			}
		}
	}
}

// TestBoxesRemoveLate (I-028): the removal of a message whose record has gone forgets no other
// message with its id.
func TestBoxesRemoveLate(t *testing.T) {
	t.Parallel()
	rt := gatewaytest.New()
	t.Cleanup(rt.Close)
	c := gatewaytest.Realm("acme", "depot")
	boxes := mailbox.New(rt.State(), "iacp", read)
	text := []byte("a 1 x")
	e, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	put := func(again bool) {
		t.Helper()
		if duplicate, err := boxes.Put(t.Context(), c, e, text); duplicate != again || err != nil {
			t.Fatalf("duplicate %t, %v; want %t", duplicate, err, again)
		}
	}
	put(false)
	list, _, err := boxes.Read(t.Context(), c, "a", 0)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d messages, %v", len(list), err)
	}
	if err := rt.State().Delete(t.Context(), list[0].Key, 0); err != nil { // as an erasure does
		t.Fatal(err)
	}
	put(false)
	if err := boxes.Remove(t.Context(), c, list[0]); err != nil {
		t.Fatal(err)
	}
	put(true)
}

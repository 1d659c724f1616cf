package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// deadPeer: what waits for a peer that is down is delivered when it is back, in order and
// once each.
func (s *suite) deadPeer(t *testing.T) {
	t.Run("comes back", func(t *testing.T) {
		var told []hosttest.Step
		texts := []string{"first of three", "second of three", "third of three"}
		for _, text := range texts {
			told = append(told, hosttest.Step{"send_broadcast", hosttest.Args{"targets": []string{s.p.agentOf("dead")}, "subject": "s", "body": text}})
		}
		body := hosttest.Script(append(told, finish("told"))...)
		if got, err := s.as(t, aliceToken).PostMessage(t.Context(), client.Post{Task: id(t, "task"), Entrypoint: "boss", Body: body}); err != nil || got.Body != "told" {
			t.Fatalf("got %+v, %v", got, err)
		}
		var mu sync.Mutex
		var came []string
		_, stop := s.p.Serve(t, s.deadAddress, func(_ context.Context, m Message, _ func(Piece)) (State, error) {
			mu.Lock()
			defer mu.Unlock()
			came = append(came, m.Text)
			return State{Status: Done, Text: "heard"}, nil
		})
		defer stop()
		settled(t, "all are delivered", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(came) >= len(texts)
		})
		if mu.Lock(); !slices.Equal(came, texts) {
			t.Errorf("it got %q", came)
		}
		mu.Unlock()
	})
	t.Run("stays away", func(t *testing.T) { s.part(t, "23/away", func() { s.awayPeer(t) }) })
}

// awayPeer: what waits for a peer that stays away is given up, and its agent has the reason.
func (s *suite) awayPeer(t *testing.T) {
	t.Helper()
	if got := s.ask(t, s.p.agentOf("gone"), "are you there?"); !strings.Contains(got, "::router_error::") {
		t.Errorf("got %q", got)
	}
	letters, _, err := s.as(t, operatorToken).DeadLetters(t.Context(), "", 100)
	if err != nil || !slices.ContainsFunc(letters, func(l client.DeadLetter) bool { return l.Peer == "gone" }) {
		t.Errorf("dead letters %+v, %v", letters, err)
	}
}

// echoPeer: a peer that asks our agent what it is asked goes round at most as often as hops
// allow, and has no reply to what is an answer itself.
func (s *suite) echoPeer(t *testing.T) {
	const text = "and you?"
	cl, again := s.dial(t, depotToken), request(s.p.agentOf("mirror"), text)
	var mu sync.Mutex
	refused, ends := 0, []string{}
	s.foreign.on(text, func(_ context.Context, m Message, _ func(Piece)) (State, error) {
		// Its own question outlives the connection on which ours came.
		got, err := cl.Send(t.Context(), Message{ID: id(t, fmt.Sprintf("hop-%d", m.Hops)), To: "boss", Text: again, Hops: m.Hops})
		mu.Lock()
		defer mu.Unlock()
		if no := new(Refused); errors.As(err, &no) {
			refused++
		}
		ends = append(ends, fmt.Sprintf("%d hops: %s %.300q %v", m.Hops, got.Status, got.Text, err))
		return State{Status: Done, Text: "round and round"}, nil
	})
	if got := s.ask(t, s.p.agentOf("mirror"), text); !strings.HasSuffix(got, "round and round") {
		t.Errorf("got %q", got)
	}
	if n := len(s.foreign.got(text)); n > 5 || n < 2 {
		t.Errorf("it went round %d times", n)
	}
	if mu.Lock(); refused != 1 {
		t.Errorf("%d refusals: %s", refused, strings.Join(ends, "\n"))
	}
	mu.Unlock()
	t.Run("an answer to nothing", func(t *testing.T) {
		s.part(t, "27/stray", func() {
			_, err := cl.Send(t.Context(), Message{ID: id(t, "stray"), Kind: Answer, To: "boss", Thread: id(t, "thread"), On: id(t, "none"), Question: Question{ID: "none"}, Text: "an answer to nothing"})
			wantRefused(t, err, Unknown, Invalid)
			if got := s.foreign.got("an answer to nothing"); len(got) > 0 {
				t.Errorf("it is answered by %+v", got)
			}
		})
	})
}

// held is a handler that answers when it is released.
func (f *foreign) held(release <-chan struct{}) Handler {
	return func(ctx context.Context, _ Message, _ func(Piece)) (State, error) {
		select {
		case <-release:
			return State{Status: Done, Text: "too late"}, nil
		case <-ctx.Done():
			return State{Status: Cancelled}, nil
		}
	}
}

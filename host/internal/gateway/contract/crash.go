package contract

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// kill: a host is killed after each step of a message on its way in and out, and when it
// starts again each message has one answer.
func (s *suite) kill(t *testing.T) {
	own := *s
	own.web, own.foreign = newWeb(t), newForeign()
	dir := t.TempDir()
	own.write(t, dir)
	h := newProcess(t, own.p, dir)
	h.start(t)
	for _, point := range []string{"read", "accepted", "committed"} {
		t.Run("in, "+point, func(t *testing.T) {
			s.part(t, "22/"+point, func() { own.killIncoming(t, h, point) })
		})
	}
	t.Run("in, a question", func(t *testing.T) {
		s.part(t, "22/question", func() { own.killAsked(t, h) })
	})
	for _, point := range []string{"sent", "answer-read", "answer-accepted", "stream"} {
		t.Run("out, "+point, func(t *testing.T) {
			s.part(t, "22/"+point, func() { own.killOutgoing(t, h, point) })
		})
	}
}

// killIncoming kills the host at a point of a message's way in. The message that is sent
// again has the one answer.
func (s *suite) killIncoming(t *testing.T, h *process, point string) {
	path := "/" + point
	m := Message{ID: id(t, "1"), To: "boss", Thread: killMark + point, Text: hosttest.Script(s.web.get(path), finish("the answer"))}
	waits := later(t, s.p.Dial(t, h.url(), s.token()), m)
	if !s.p.Broker {
		if got := receive(t, "the host dies", waits); got.err == nil {
			t.Fatalf("the host lives and answers %+v", got.State)
		}
	}
	until(t, "the host is dead", h.over)
	h.start(t)
	if s.p.Broker { // the message has waited at the broker
		got := receive(t, "the answer comes", waits)
		wantText(t, got.State, got.err, "the answer")
	}
	cl := s.p.Dial(t, h.url(), s.token())
	for range 2 {
		wantText(t, send(t, cl, m), nil, "the answer")
	}
	// The request of a turn that was cut off is made once more, under the same key.
	if n := s.web.count(path); n == 0 || n > 2 {
		t.Errorf("the agent called %d times", n)
	}
}

// killAsked kills the host while a question waits. It is answered in the next life.
func (s *suite) killAsked(t *testing.T, h *process) {
	m := Message{ID: id(t, "1"), To: "boss", Thread: id(t, "thread"), Text: confirmScript}
	asked := send(t, s.p.Dial(t, h.url(), s.token()), m)
	if asked.Status != Asks {
		t.Fatalf("got %+v", asked)
	}
	h.kill()
	h.start(t)
	cl := s.p.Dial(t, h.url(), s.token())
	asked, err := cl.Look(t.Context(), m)
	if err != nil || asked.Status != Asks || len(asked.Questions) != 1 {
		t.Fatalf("after the kill it is %+v, %v", asked, err)
	}
	reply := Message{ID: id(t, "2"), Kind: Answer, To: "boss", Thread: m.Thread, On: m.ID, Question: asked.Questions[0], Text: "yes"}
	wantText(t, send(t, cl, reply), nil, "confirmed: yes")
}

// killOutgoing kills the host at a point of a message's way out. The foreign agent has it
// under one id, and ours has one answer.
func (s *suite) killOutgoing(t *testing.T, h *process, point string) {
	text, came := killMark+point, make(chan struct{}, 10)
	s.foreign.on(text, func(ctx context.Context, _ Message, show func(Piece)) (State, error) {
		came <- struct{}{}
		if point == "sent" && len(s.foreign.got(text)) == 1 {
			<-ctx.Done() // the host dies
		}
		if point == "stream" {
			show(Piece{Chunk: "the answer"})
		}
		return State{Status: Done, Text: "the answer"}, nil
	})
	c := h.as(t, aliceToken)
	post := client.Post{Task: id(t, "task"), Key: id(t, "key"), Entrypoint: "boss", Body: request(s.p.agentOf("depot"), text)}
	if point == "stream" {
		arm(t, h.dir)
	}
	if _, err := c.PostAsync(t.Context(), post); err != nil {
		t.Fatal(err)
	}
	if point == "sent" {
		<-came
		h.kill()
	}
	until(t, "the host is dead", h.over)
	h.start(t)
	got, err := h.as(t, aliceToken).PostMessage(t.Context(), post)
	if err != nil || !strings.HasSuffix(got.Body, "the answer") || strings.Contains(got.Body, "::") {
		t.Errorf("got %+v, %v", got, err)
	}
	list := s.foreign.got(text)
	if len(list) == 0 || len(list) > 2 {
		t.Errorf("it came %d times", len(list))
	}
	for _, m := range list {
		if m.ID != list[0].ID {
			t.Errorf("it came as %s and as %s", list[0].ID, m.ID)
		}
	}
}

// arm asks the process for its kill before the record of a stream.
func arm(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "armed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

package capability

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
	"skep/spec/mail"
)

// stubborn asks again and again when it is told to go, in one of two ways, and
// notes what it was told.
func stubborn(submits bool) func(*visit) {
	return func(v *visit) {
		if m, _ := mail.ParseMessage(v.in.Message); m.Payload.Body != "go" {
			shop(v)
			return
		}
		var notes []string
		for i := range 3 {
			req := fmt.Sprintf(`{"name":"confirm","args":{"n":%d}}`, i)
			if !submits {
				notes = append(notes, v.call(abi.OpAction, req))
				continue
			}
			a, fault := v.t.Ops.Submit(v.ctx, abi.OpAction, []byte(req))
			if fault != nil {
				return
			}
			if _, fault = v.t.Ops.Wait(v.ctx, []turn.Answer{a}, -1); fault == nil {
				_, fault = a.Read(v.ctx, make([]byte, 99))
			}
			notes = append(notes, fault.Error())
			a.Close()
		}
		v.output, _ = json.Marshal(abi.TurnResult{Notes: notes})
	}
}

// A user's message instead of an answer is not delayed by further breakpoints of the turn:
// each is cancelled at once, also if the host dies in between.
func TestNobodyAnswersFurtherQuestions(t *testing.T) {
	t.Parallel()
	for _, submits := range []bool{false, true} {
		for dies := range int64(7) {
			h := newShop(t, stubborn(submits))
			h.start(0, false)
			if a, err := h.ask(); err != nil || a.State != swarm.StatePaused {
				t.Fatalf("%+v, %v", a, err)
			}
			h.stop()
			h.start(dies, false) // never, or at one of its first writes
			more := h.post()
			more.Key, more.Body, more.MustExist = "more", "more", true
			_, _ = h.send(more)
			h.stop()
			h.start(0, false)
			if a, err := h.send(more); err != nil || a.Body != "then q more" {
				t.Errorf("submits %v, death at %d: %+v, %v", submits, dies, a, err)
			}
			story := strings.Join(h.story(), "\n")
			if n := strings.Count(story, `"text":"ERROR: the user has written instead`); n != 3 {
				t.Errorf("submits %v, death at %d: %d results in\n%s", submits, dies, n, story)
			}
			if n := strings.Count(story, "\nbreakpoint_tool_call"); n != 1 {
				t.Errorf("submits %v, death at %d: %d pauses", submits, dies, n)
			}
			if strings.Contains(story, mail.SubjectActionError) {
				t.Errorf("a call that was called off is told as an error:\n%s", story)
			}
			h.stop()
		}
	}
}

// What a turn did before it was suspended is counted once, however often it is run
// again.
func TestUsageOfASuspendedTurn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	h := newShop(t, func(v *visit) {
		v.call(abi.OpHTTPFetch, fetch(s.URL+"/one"))
		for i := range 3 {
			v.call(abi.OpAction, fmt.Sprintf(`{"name":"confirm","args":{"n":%d}}`, i))
		}
		v.mail(mail.ToolTaskComplete, obj{"finish_message": "done"})
	})
	o := online(t, s, nil)
	h.web, h.allow = o.web, o.allow
	h.start(0, false)
	defer func() { h.stop() }()
	if a, err := h.ask(); err != nil || a.State != swarm.StatePaused {
		t.Fatalf("%+v, %v", a, err)
	}
	for range 3 {
		h.restart()
		if a, err := h.resume(one("yes")); err != nil || a.State == swarm.StateFailed {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	snap, err := h.rt.Task(context.Background(), h.key())
	u := snap.Task.Usage
	if err != nil || u.Turns != 1 || u.Fetches != 1 || len(s.requests()) != 1 || len(snap.Task.Metered) != 0 {
		t.Errorf("%+v, %v; %d requests", snap.Task, err, len(s.requests()))
	}
	rec, err := h.store.Record(context.Background(), h.key(), 1)
	if err != nil || rec.End.Usage.FetchBytes != u.FetchBytes || u.FetchBytes == 0 {
		t.Errorf("%+v, %v; the task has %+v", rec.End, err, u)
	}
}

// A turn that ends right behind a refused action is told why, and goes on.
func TestRefusedActionIsTold(t *testing.T) {
	t.Parallel()
	h := newShop(t, func(v *visit) {
		if m, _ := mail.ParseMessage(v.in.Message); m.Payload.Sender.Type == mail.System {
			v.mail(mail.ToolTaskComplete, obj{"finish_message": m.Payload.Subject + " " + m.Payload.Body})
			return
		}
		v.call(abi.OpAction, `{"name":"fly","args":{"to":"rome"}}`)
		v.call(abi.OpAction, `{"name":7}`)
	})
	h.start(0, false)
	defer h.stop()
	a, err := h.ask()
	want := mail.SubjectActionError + ` action "fly": agent "boss" has no action "fly"`
	if err != nil || !strings.HasPrefix(a.Body, want) || !strings.Contains(a.Body, "\naction \"\": ") {
		t.Errorf("%+v, %v", a, err)
	}
	story := strings.Join(h.story(), "\n")
	for _, want := range []string{"\naction_error\n", `"call":{"id":"t1.c1","name":"fly","args":{"to":"rome"}}`} {
		if !strings.Contains(story, want) {
			t.Errorf("no %q in\n%s", want, story)
		}
	}
}

package swarm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"skep/host/internal/swarm"
)

// blocks is an agent that waits for the end of its host; begun is closed when it runs.
func blocks(begun *sync.WaitGroup) behave {
	return func(ctx context.Context, _ *swarm.Turn) swarm.Outcome {
		begun.Done()
		<-ctx.Done()
		return failed(ctx.Err())
	}
}

// A post whose message was handled before the host stopped is answered by the next
// completion, and does not keep the task running.
func TestHandledPostIsAnsweredAfterRestart(t *testing.T) {
	t.Parallel()
	var begun sync.WaitGroup
	h := newHive(t)
	h.agents.by["math"] = blocks(&begun)
	begun.Add(1)
	h.mustPost(`[["send_request",{"target":"math","subject":"s","body":"b"}]]`, task("t"), idem("one"))
	begun.Wait()
	delete(h.agents.by, "math")
	h.restart()
	a := h.answer(h.mustPost(`[["send_request",{"target":"math","subject":"s","body":"b"}]]`, task("t"), idem("one")))
	if want := "boss got [Re: s] echo: b"; a.Body != want || a.State != swarm.StateCompleted {
		t.Errorf("the answer is %+v, want %q", a, want)
	}
}

// A post whose message still waits when the host stops is answered by its own
// completion, not by the one before.
func TestWaitingPostIsAnsweredAfterRestart(t *testing.T) {
	t.Parallel()
	var begun sync.WaitGroup
	h := newHive(t)
	h.agents.by["boss"] = blocks(&begun)
	begun.Add(1)
	h.mustPost("first", task("t"), idem("one"))
	begun.Wait()
	h.mustPost("second", task("t"), idem("two"))
	delete(h.agents.by, "boss")
	h.restart()
	for key, body := range map[string]string{"one": "first", "two": "second"} {
		a := h.answer(h.mustPost(body, task("t"), idem(key)))
		if want := "boss got [q] " + body; a.Body != want {
			t.Errorf("post %s is answered with %q, want %q", key, a.Body, want)
		}
	}
	if left := h.record("t").Posts; len(left) > 0 {
		t.Errorf("still waiting are %+v", left)
	}
}

// A record does not grow with waiting posts: every mutation writes all of it.
func TestWaitingPostsAreNotInTheRecord(t *testing.T) {
	t.Parallel()
	var begun sync.WaitGroup
	h := newHive(t)
	h.agents.by["boss"] = blocks(&begun)
	begun.Add(1)
	h.mustPost("first", task("t"))
	begun.Wait()
	size := func() int {
		raw, err := json.Marshal(h.record("t").Task)
		if err != nil {
			t.Fatal(err)
		}
		return len(raw)
	}
	before := size()
	const n = 50
	for i := range n {
		h.mustPost(fmt.Sprint("post ", i), task("t"))
	}
	if got := len(h.record("t").Posts); got != n+1 {
		t.Errorf("%d posts wait, want %d", got, n+1)
	}
	if after := size(); after > before+n { // numbers in it have more digits
		t.Errorf("the record grew from %d to %d bytes", before, after)
	}
}

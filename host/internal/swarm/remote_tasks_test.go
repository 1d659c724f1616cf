package swarm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// One task id of two users of a peer is two tasks, each with answers of its own. What
// comes again finds its own (G-40).
func TestTasksApart_G40(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive := p.hives["hive"]
	p.set(map[string]string{"depot": "wait"})
	wrapper := func(n int, user string, change ...func(*mail.Interswarm)) mail.Interswarm {
		return foreign("job", append([]func(*mail.Interswarm){func(w *mail.Interswarm) {
			w.MessageID = fmt.Sprintf("1c9d0000-0000-4000-8000-%012d", n)
			w.TaskOwner, w.TaskContributors = user, []string{user}
		}}, change...)...)
	}
	runners := map[string]swarm.IncomingReceipt{}
	for i, user := range []string{"user:u@depot", "user:v@depot", "user:w@depot"} {
		got, err := p.hand("depot", "hive", false, wrapper(i, user), 0)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := p.hand("depot", "hive", false, wrapper(i, user), 0); err != nil || !again.Duplicate || again.Task != got.Task {
			t.Errorf("again: %+v, %v", again, err)
		}
		back := wrapper(10+i, user, func(w *mail.Interswarm) { w.TaskContributors = append(w.TaskContributors, got.Runner) })
		if more, err := p.hand("depot", "hive", true, back, 0); err != nil || more.Task != got.Task {
			t.Errorf("back: %+v, %v", more, err)
		}
		if _, taken := runners[got.Runner]; taken {
			t.Errorf("the runner %s serves two", got.Runner)
		}
		runners[got.Runner] = got
		if rec := hive.load(got.Task).Task; rec.Owner != user || rec.Key.Task != "job" {
			t.Errorf("task %+v", rec)
		}
	}
	if _, ok := runners["swarm:depot@hive"]; !ok {
		t.Errorf("runners %v", runners)
	}
	for runner, got := range runners {
		foe := wrapper(99, "user:x@depot", func(w *mail.Interswarm) { w.TaskContributors = append(w.TaskContributors, runner) })
		if _, err := p.hand("depot", "hive", true, foe, 0); !errors.Is(err, swarm.ErrForbidden) {
			t.Errorf("another owner writes to %v: %v", got.Task, err)
		}
	}
}

// What one key may have under way is bounded, in all its instances together.
func TestPeerTasksAreBounded(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive := p.hives["hive"]
	p.set(map[string]string{"depot": "wait"})
	def := hive.def
	def.Limits.PeerTasks = 2
	if err := hive.rt.ReplaceDefinitions([]swarm.Definition{def}); err != nil {
		t.Fatal(err)
	}
	apart := swarm.TaskKey{}
	send := func(n int, task, user string) error {
		got, err := p.hand("depot", "hive", false, foreign(task, func(w *mail.Interswarm) {
			w.MessageID = fmt.Sprintf("1c9d0000-0000-4000-8000-%012d", n)
			w.TaskOwner, w.TaskContributors = user, []string{user}
			w.Payload.Recipients[0].Name, w.Payload.Body = "math@hive", "[]"
			w.Type = mail.Broadcast
		}), 0)
		if user == "user:v@depot" {
			apart = got.Task
		}
		return err
	}
	if err := errors.Join(send(1, "a", "user:u@depot"), send(2, "a", "user:v@depot")); err != nil {
		t.Fatal(err)
	}
	err := send(3, "b", "user:u@depot")
	if !errors.Is(err, swarm.ErrLimit) || !strings.Contains(err.Error(), "raise [limits] peer_tasks") {
		t.Errorf("a third task: %v", err)
	}
	if err := send(4, "a", "user:u@depot"); err != nil {
		t.Errorf("a task that runs: %v", err)
	}
	if err := hive.rt.CancelTask(t.Context(), guest("hive", "depot", "a"), "the operator"); err != nil {
		t.Fatal(err)
	}
	if err := send(5, "b", "user:u@depot"); err != nil {
		t.Errorf("after an end: %v", err)
	}
	if err := send(6, "a", "user:u@depot"); !errors.Is(err, swarm.ErrLimit) {
		t.Errorf("a task that begins again: %v", err)
	}
	hive.restart()
	for _, key := range []swarm.TaskKey{apart, guest("hive", "depot", "b")} {
		eventually(t, "the task of the host before", func() bool {
			s, err := hive.rt.Status(t.Context(), key.InstanceKey)
			return err == nil && s.Running
		})
	}
	if err := hive.rt.ReplaceDefinitions([]swarm.Definition{def}); err != nil {
		t.Fatal(err)
	}
	if err := send(7, "c", "user:u@depot"); !errors.Is(err, swarm.ErrLimit) {
		t.Errorf("after a restart: %v", err)
	}
}

// acceptStore holds the next message until the test decides whether it is written.
type acceptStore struct {
	swarm.Store
	hold  atomic.Bool
	begun chan struct{}
	end   chan error
}

func (s *acceptStore) Accept(ctx context.Context, m swarm.Mutation, sub swarm.Submission) (swarm.Submission, error) {
	if s.hold.CompareAndSwap(true, false) {
		s.begun <- struct{}{}
		if err := <-s.end; err != nil {
			return swarm.Submission{}, err
		}
	}
	return s.Store.Accept(ctx, m, sub)
}

// A message that is being written has its place among the tasks of its swarm, and has it
// once. One that cannot be written gives it back.
func TestPeerTasksAreReserved(t *testing.T) {
	s := &acceptStore{begun: make(chan struct{}), end: make(chan error)}
	r := newRealm(t, func(h *hive) {
		h.wrap = func(st swarm.Store) swarm.Store { s.Store = st; return s }
		h.agents.by["math"] = func(ctx context.Context, _ *swarm.Turn) swarm.Outcome {
			<-ctx.Done()
			return failed(ctx.Err())
		}
	})
	send := func(task string) error {
		in := r.wrapper(task, "math", "x")
		in.Asks = 2
		_, err := r.rt.Receive(t.Context(), in)
		return err
	}
	if err := send("a"); err != nil {
		t.Fatal(err)
	}
	during := func(outcome error) (held, other error) {
		s.hold.Store(true)
		in := r.wrapper("b", "math", "x")
		in.Asks = 2
		done := make(chan error, 1)
		go func() {
			_, err := r.rt.Receive(context.WithoutCancel(t.Context()), in)
			done <- err
		}()
		select {
		case <-s.begun:
		case err := <-done:
			t.Fatalf("it is refused before it is written: %v", err)
		}
		other = send("c")
		s.end <- outcome
		return <-done, other
	}
	if held, other := during(swarm.ErrInvalid); !errors.Is(held, swarm.ErrInvalid) || !errors.Is(other, swarm.ErrLimit) {
		t.Errorf("one is written and refused: %v; the other: %v", held, other)
	}
	if held, other := during(nil); held != nil || !errors.Is(other, swarm.ErrLimit) || !strings.Contains(other.Error(), "2 tasks") {
		t.Errorf("one is written: %v; the other: %v", held, other)
	}
	if err := r.rt.CancelTask(t.Context(), guest("hive", "acme", "a"), "the operator"); err != nil {
		t.Fatal(err)
	}
	if err := send("c"); err != nil {
		t.Errorf("after an end: %v", err)
	}
}

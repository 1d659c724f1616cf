package swarm_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// asksTwice is an outcome that waits for two answers of people.
func asksTwice(t *swarm.Turn) swarm.Outcome {
	out := asks(t)
	second := out.Suspended[0]
	second.Call, second.ID, second.Op = "2", t.CallID("2"), abi.OpAction
	out.Suspended = append(out.Suspended, second)
	return out
}

// newAsking is a realm whose math asks two people about each request, and responds with
// what it heard first.
func newAsking(t *testing.T, change ...func(*hive)) *realm {
	return newRealm(t, append(change, func(h *hive) {
		h.agents.by["math"] = func(_ context.Context, t *swarm.Turn) swarm.Outcome {
			prior := t.PriorAttempt()
			if prior == nil {
				return asksTwice(t)
			}
			call(t, mail.ToolSendResponse, obj{"target": "x@acme", "subject": "said", "body": heard(prior.Answers)})
			return swarm.Outcome{}
		}
	})...)
}

// questions lists what waits for people in a tenant.
func (h *hive) questions(tenant string) []swarm.Question {
	h.t.Helper()
	list, next, err := h.runtime().Questions(h.t.Context(), swarm.InstanceKey{Tenant: tenant, Swarm: "hive"}, "", 100)
	if err != nil || next != "" {
		h.t.Fatalf("Questions() = %+v, %q, %v", list, next, err)
	}
	return list
}

// What a realm's task asks is listed and answered by a person here, one call after the
// other, over restarts; the answer to the realm is the agent's response (G-025).
func TestAnswerRealmsQuestion(t *testing.T) {
	r := newAsking(t)
	in := r.wrapper("job", "math", "x")
	in.Brief = true
	r.waitState(r.receive(in).Exchanges[0])
	key := guest("hive", "acme", "job")
	answer := func(key swarm.TaskKey, call, text string) error {
		return r.runtime().AnswerQuestion(t.Context(), key, call, text)
	}
	list := r.questions(swarm.DefaultTenant)
	if len(list) != 2 || list[0].Task != key || list[0].Call != "t1.c1" || list[0].Agent != "math" || list[0].Action != "confirm" ||
		list[0].Arguments != "{}" || list[0].Since.IsZero() || list[0].AnsweredAt != "" || list[1].Call != "t1.c2" {
		t.Fatalf("questions %+v", list)
	}
	for name, c := range map[string]struct {
		key  swarm.TaskKey
		call string
		text string
		want error
	}{
		"no such task":   {guest("hive", "acme", "none"), "t1.c1", "", swarm.ErrNotFound},
		"other realm":    {guest("hive", "yard", "job"), "t1.c1", "", swarm.ErrNotFound},
		"no such tenant": {swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: "none", Swarm: "hive", Instance: key.Instance}, Task: "job"}, "t1.c1", "", swarm.ErrNotFound},
		"no such call":   {key, "t9.c1", "", swarm.ErrConflict},
		"too long":       {key, "t1.c1", strings.Repeat("x", swarm.MaxBreakpointBytes+1), swarm.ErrInvalid},
	} {
		if err := answer(c.key, c.call, c.text); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	r.restart()
	if err := answer(key, "t1.c1", "yes"); err != nil {
		t.Fatal(err)
	}
	if err := answer(key, "t1.c1", "no"); !errors.Is(err, swarm.ErrConflict) {
		t.Errorf("a second answer: %v", err)
	}
	if err := answer(key, "t1.c2", strings.Repeat("x", swarm.MaxBreakpointBytes)); !errors.Is(err, swarm.ErrInvalid) {
		t.Errorf("answers that are too long together: %v", err)
	}
	r.restart()
	if list := r.questions(swarm.DefaultTenant); len(list) != 1 || list[0].Call != "t1.c2" {
		t.Fatalf("questions after one answer: %+v", list)
	}
	if state := r.snapshot("job").Task.State; state != swarm.StatePaused {
		t.Errorf("the task is %s though a call waits", state)
	}
	if err := answer(key, "t1.c2", "also"); err != nil {
		t.Fatal(err)
	}
	if a := r.wait(r.find(in)); a.Body != "yes" || a.Caller != "math" {
		t.Errorf("answer %+v", a)
	}
	eventually(t, "the task ends", func() bool { return r.snapshot("job").Task.State == swarm.StateCompleted })
	if list := r.questions(swarm.DefaultTenant); len(list) != 0 {
		t.Errorf("questions of an ended task: %+v", list)
	}
	if err := answer(key, "t1.c2", "again"); !errors.Is(err, swarm.ErrConflict) {
		t.Errorf("an answer to an ended task: %v", err)
	}
}

// A task that another MAIL swarm handed in is answered there; it is listed, and refused
// here.
func TestAnswerPeersQuestion(t *testing.T) {
	p := federate(t, "hive", "depot")
	p.humans("depot")
	pendings(t, p.hives["hive"].ask(requestTo("math@depot", "b"), task("t")))
	p.rest()
	depot := p.hives["depot"]
	list, _, err := depot.rt.Questions(t.Context(), swarm.InstanceKey{Tenant: swarm.DefaultTenant, Swarm: "depot"}, "", 10)
	if err != nil || len(list) != 1 || list[0].AnsweredAt != "hive" {
		t.Fatalf("questions %+v, %v", list, err)
	}
	if err := depot.rt.AnswerQuestion(t.Context(), list[0].Task, list[0].Call, "yes"); !errors.Is(err, swarm.ErrConflict) {
		t.Errorf("an answer at the wrong swarm: %v", err)
	}
	here := p.hives["hive"].questions(swarm.DefaultTenant)
	if len(here) != 1 || here[0].Agent != "math@depot" || here[0].AnsweredAt != "" {
		t.Fatalf("questions at the owner's: %+v", here)
	}
	if err := p.hives["hive"].rt.AnswerQuestion(t.Context(), here[0].Task, here[0].Call, "yes"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the task ends", func() bool { return p.hives["hive"].record("t").Task.State.Ended() })
	p.rest()
}

// An erased tenant has no questions, and an answer to one of them is refused; another
// tenant's stay.
func TestQuestionsOfAnErasedTenant(t *testing.T) {
	h := newHive(t, func(h *hive) {
		h.also = []string{"acme"}
		h.agents.by["boss"] = func(_ context.Context, t *swarm.Turn) swarm.Outcome { return asks(t) }
	})
	h.ask("x", task("t"), ofTenant("acme"))
	h.ask("x", task("t"))
	gone := h.questions("acme")
	if len(gone) != 1 || len(h.questions("")) != 2 {
		t.Fatalf("questions %+v", h.questions(""))
	}
	if err := h.rt.EraseTenant(t.Context(), "acme", nil); err != nil {
		t.Fatal(err)
	}
	if list := h.questions(""); len(list) != 1 || list[0].Task.Tenant != swarm.DefaultTenant {
		t.Errorf("questions after the erasure: %+v", list)
	}
	if err := h.rt.AnswerQuestion(t.Context(), gone[0].Task, gone[0].Call, "yes"); !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("an answer to an erased tenant's task: %v", err)
	}
}

package swarm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// A request of a swarm that cannot be answered is refused at once; messages that need
// no answer are accepted.
func TestNoWayBack(t *testing.T) {
	p := federate(t, "hive")
	for i, c := range []struct {
		kind mail.Type
		want error
	}{
		{mail.Request, swarm.ErrInvalid}, {mail.Interrupt, swarm.ErrInvalid}, {mail.Broadcast, nil}, {mail.Response, nil},
	} {
		task := fmt.Sprintf("t%d", i)
		_, err := p.hand("depot", "hive", false, foreign(task, func(w *mail.Interswarm) {
			w.Type, w.MessageID = c.kind, fmt.Sprintf("1c9d0000-0000-4000-8000-00000000000%d", i)
		}), 1)
		if !errors.Is(err, c.want) || err != nil && !strings.HasPrefix(err.Error(), "swarm 'hive' has no way back to 'depot': add [peers.depot]") {
			t.Errorf("%s: %v, want %v", c.kind, err, c.want)
		}
		_, none := p.hives["hive"].rt.Task(t.Context(), guest("hive", "depot", task))
		if errors.Is(none, swarm.ErrNotFound) != (c.want != nil) {
			t.Errorf("%s: the task: %v", c.kind, none)
		}
	}
}

// A refused wrapper is logged in its task: three times at most, and not when the task
// is another swarm's, or has ended.
func TestTurnedAway(t *testing.T) {
	p := federate(t, "hive", "depot", "thief")
	hive := p.hives["hive"]
	p.set(map[string]string{"depot": "wait"})
	hive.mustPost(requestTo("math@depot", "x"), task("open"))
	eventually(t, "the owner's turn", func() bool { return len(hive.record("open").Task.Requests) == 1 })
	hive.ask("[]", task("ended"))
	turn := func(from, task string, edit func(*mail.Interswarm)) {
		t.Helper()
		w := foreign(task, func(w *mail.Interswarm) {
			w.TaskOwner, w.TaskContributors = "user:alice@hive", []string{"user:alice@hive", "swarm:hive@depot"}
		}, edit)
		in := swarm.Incoming{
			Principal: swarm.Principal{Tenant: swarm.DefaultTenant, Role: mail.RoleSwarm, ID: from}, Peer: from, Swarm: "hive", Back: true, Wrapper: w,
		}
		if err := hive.rt.RecordRefusedWrapper(t.Context(), in, "it is not signed"); err != nil {
			t.Error(err)
		}
	}
	same := func(*mail.Interswarm) {}
	turn("thief", "open", same)
	turn("depot", "open", func(w *mail.Interswarm) { w.TaskOwner = "user:eve@hive" })
	turn("depot", "open", func(w *mail.Interswarm) { w.TaskContributors = []string{"user:u@depot"} })
	turn("depot", "none", same)
	turn("depot", "ended", same)
	for range 5 {
		turn("depot", "open", same)
	}
	told := func(task string) []swarm.Event {
		all, err := hive.rt.Events(t.Context(), hive.record(task).Task.Key, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(all, func(e swarm.Event) bool { return e.Name != "interswarm_message_error" })
	}
	open := told("open")
	if len(open) != 3 || open[0].Description != "a message from swarm depot was refused: it is not signed" || len(told("ended")) > 0 {
		t.Fatalf("told %+v and %+v", open, told("ended"))
	}
	var extra struct{ Swarm, Error string }
	if err := json.Unmarshal(open[0].Extra, &extra); err != nil || extra.Swarm != "depot" || extra.Error != "it is not signed" {
		t.Errorf("%s: %v", open[0].Extra, err)
	}
	if got := hive.record("open").Task.State; got != swarm.StateRunning {
		t.Errorf("the task is %s", got)
	}
}

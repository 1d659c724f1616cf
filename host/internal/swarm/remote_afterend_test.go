package swarm_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// visitor sends wrappers of a swarm that has a part in a task, each under an id of its
// own.
type visitor struct {
	*post
	from, to string
	task     swarm.Task
	n        int
}

func (v *visitor) send(kind mail.Type, change ...func(*mail.Interswarm)) error {
	v.n++
	w := foreign(v.task.Key.Task, append([]func(*mail.Interswarm){func(w *mail.Interswarm) {
		w.MessageID = fmt.Sprintf("1c9d0000-0000-4000-8000-%012d", v.n)
		w.SourceSwarm, w.TargetSwarm, w.Type = v.from, v.to, kind
		w.TaskOwner, w.TaskContributors = v.task.Owner, v.task.Contributors
		w.Payload.ID = fmt.Sprintf("1c9d0000-0000-4000-8001-%012d", v.n)
		w.Payload.Sender.Name, w.Payload.Recipients[0].Name = "math@"+v.from, "math@"+v.to
	}}, change...)...)
	_, err := v.hand(v.from, v.to, true, w, 0)
	return err
}

func body(text string) func(*mail.Interswarm) {
	return func(w *mail.Interswarm) { w.Payload.Body = text }
}

// over is a task of hive's in which depot has had a part, and that has ended.
func over(t *testing.T) (*post, *visitor) {
	p := federate(t, "hive", "depot")
	p.hives["hive"].ask(requestTo("math@depot", "x"), task("t"))
	eventually(t, "the end at the contributor", func() bool {
		return p.hives["depot"].load(guest("depot", "hive", "t")).Task.State.Ended()
	})
	p.rest()
	return p, &visitor{post: p, from: "depot", to: "hive", task: p.hives["hive"].record("t").Task}
}

// A request for an ended task is answered, because no agent reads it. It leaves nothing
// open.
func TestRequestAfterTheEnd_R041(t *testing.T) {
	p, depot := over(t)
	if err := depot.send(mail.Request); err != nil {
		t.Fatal(err)
	}
	p.rest()
	if !has(p.wire(), "hive>depot back response [::router_error::]") {
		t.Errorf("the wire had %q", p.wire())
	}
	if snap := p.hives["hive"].record("t"); len(snap.Rows) > 0 || len(snap.Task.Requests) > 0 || !snap.Task.State.Ended() {
		t.Errorf("rows %v, open %v", snap.Rows, snap.Task.Requests)
	}
}

// The swarm that called, and the owner's, make a part run again; another contributor,
// and an answer, do not.
func TestWhoReopens(t *testing.T) {
	for name, c := range map[string]struct {
		from string
		kind mail.Type
		want bool
	}{
		"the caller":           {"depot", mail.Request, true},
		"the owner":            {"hive", mail.Request, true},
		"an answer":            {"depot", mail.Response, false},
		"another contributor":  {"shed", mail.Request, false},
		"another's broadcast":  {"shed", mail.Broadcast, false},
		"the owner's response": {"hive", mail.Response, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := federate(t, "hive", "depot", "yard", "shed")
			first := foreign("t", func(w *mail.Interswarm) {
				w.TargetSwarm, w.Payload.Recipients[0].Name = "yard", "boss@yard"
				w.TaskOwner, w.TaskContributors = "user:alice@hive", []string{"user:alice@hive", "swarm:hive@depot", "swarm:depot@shed"}
				w.Payload.Body = "x"
			})
			p.set(map[string]string{"depot": "gone", "hive": "gone", "shed": "gone"})
			if _, err := p.hand("depot", "yard", false, first, 1); err != nil {
				t.Fatal(err)
			}
			part := guest("yard", "depot", "t")
			yard := p.hives["yard"]
			eventually(t, "the end of the part", func() bool { return yard.load(part).Task.State.Ended() })
			p.rest()
			before := len(yard.agents.turns())
			v := &visitor{post: p, from: c.from, to: "yard", task: yard.load(part).Task, n: 1}
			if err := v.send(c.kind, body("again")); err != nil {
				t.Fatal(err)
			}
			p.rest()
			if c.want {
				eventually(t, "a turn", func() bool { return len(yard.agents.turns()) > before })
			} else if snap := yard.load(part); !snap.Task.State.Ended() || len(yard.agents.turns()) > before {
				t.Errorf("the task is %s, turns %q", snap.Task.State, yard.agents.turns())
			}
		})
	}
}

// What a swarm may leave with a task in which no turn runs is bounded, in number and
// in bytes, and by [limits] queue. The user's limit is not used up by it.
func TestStashIsBounded(t *testing.T) {
	p, depot := over(t)
	hive := p.hives["hive"]
	sent := 0
	var err error
	for ; err == nil && sent < 200; sent++ {
		err = depot.send(mail.Response, body("junk"))
	}
	if !errors.Is(err, swarm.ErrLimit) || sent != 101 || !strings.Contains(err.Error(), "task 't' is completed and keeps 100 messages of swarm 'depot'") {
		t.Fatalf("%d were taken, then %v", sent-1, err)
	}
	if err := depot.send(mail.Response, func(w *mail.Interswarm) { w.Payload.Subject = mail.SubjectTaskComplete }); err != nil {
		t.Errorf("a completion is kept out: %v", err)
	}
	a := hive.ask(`[]`, task("t"), func(p *swarm.Post) { p.MaxSteps = 3 })
	eventually(t, "all turns", func() bool { return len(hive.record("t").Rows) == 0 })
	if snap := hive.record("t"); snap.Task.Steps > 3 || slices.Contains(hive.agents.turns(), "boss<-hive:"+mail.SubjectMaximumStepsReached) {
		t.Errorf("%d steps, answer %+v", snap.Task.Steps, a)
	}
}

func TestStashedBytesAreBounded(t *testing.T) {
	_, depot := over(t)
	for i := range 4 {
		if err := depot.send(mail.Broadcast, body(strings.Repeat("x", swarm.MaxBody-100))); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := depot.send(mail.Broadcast, body(strings.Repeat("x", 2000))); !errors.Is(err, swarm.ErrLimit) || !strings.Contains(err.Error(), "bytes of swarm 'depot'") {
		t.Errorf("too many bytes: %v", err)
	}
	if err := depot.send(mail.Broadcast, func(w *mail.Interswarm) {
		w.Payload.Recipients = []mail.Address{{Type: mail.Agent, Name: "math"}, {Type: mail.Agent, Name: "boss"}}
		w.Payload.Body = ""
	}); err != nil {
		t.Errorf("one that fits: %v", err)
	}
}

// A wrapper counts once for each agent that gets it.
func TestStashCountsInQueue(t *testing.T) {
	p, depot := over(t)
	def := p.hives["hive"].def
	def.Limits.Queue = 3
	if err := p.hives["hive"].rt.ReplaceDefinitions([]swarm.Definition{def}); err != nil {
		t.Fatal(err)
	}
	both := func(w *mail.Interswarm) {
		w.Payload.Recipients = []mail.Address{{Type: mail.Agent, Name: "math"}, {Type: mail.Agent, Name: "boss"}}
	}
	if err := depot.send(mail.Broadcast, both); err != nil {
		t.Fatal(err)
	}
	if err := depot.send(mail.Broadcast, both); !errors.Is(err, swarm.ErrLimit) || !strings.Contains(err.Error(), "raise [limits] queue") {
		t.Errorf("four rows: %v", err)
	}
	if err := depot.send(mail.Broadcast); err != nil {
		t.Errorf("three rows: %v", err)
	}
}

// Only the end of a task may be dropped by a swarm that does not know it; results,
// reports and faults are given up with a reason.
func TestWhatIsAnEnding(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive, depot := p.hives["hive"], p.hives["depot"]
	next := func(rt *swarm.Runtime, key swarm.TaskKey, peer string) swarm.Delivery {
		var got swarm.Delivery
		eventually(t, "a letter", func() bool {
			parcel, ok, err := rt.NextDelivery(t.Context(), swarm.OutboxKey{Task: key, Peer: peer})
			got = parcel
			return ok && err == nil
		})
		return got
	}
	p.humans("depot")
	p.set(map[string]string{"hive": "wait"})
	hive.mustPost(requestTo("math@depot", "x"), task("t"))
	part := guest("depot", "hive", "t")
	if l := next(depot.rt, part, "hive"); !l.Notice || l.Ending || l.Wrapper.Payload.Subject != mail.SubjectBreakpointToolCall {
		t.Errorf("a report: %+v", l)
	}
	p.set(nil)
	carrier{p, "depot"}.Wake(swarm.OutboxKey{Task: part, Peer: "hive"})
	eventually(t, "the pause", func() bool { return hive.record("t").Task.State == swarm.StatePaused })
	p.set(map[string]string{"depot": "wait"})
	hive.mustPost("", task("t"), results("yes"))
	if l := next(hive.rt, key("t"), "depot"); !l.Notice || l.Ending {
		t.Errorf("results: %+v", l)
	}
	p.set(nil)
	carrier{p, "hive"}.Wake(swarm.OutboxKey{Task: key("t"), Peer: "depot"})
	eventually(t, "the end and its delivery", func() bool { snap := hive.record("t"); return snap.Task.State.Ended() && len(snap.Outbox) == 0 })
	p.rest()
	p.set(map[string]string{"depot": "wait"})
	hive.ask(`[["send_broadcast",{"targets":["math@depot"],"subject":"b","body":"y"}],["task_complete",{"finish_message":"done"}]]`, task("t"))
	l := next(hive.rt, key("t"), "depot")
	l, ok, err := hive.rt.NextDelivery(t.Context(), swarm.OutboxKey{Task: key("t"), Peer: "depot"}, l.Wrapper.MessageID)
	if err != nil || !ok || !l.Ending || l.Wrapper.Payload.Subject != mail.SubjectTaskComplete {
		t.Errorf("an end: %+v, %t, %v", l, ok, err)
	}
}

// The word that a task has ended is taken back from a swarm that, as it turns out,
// has refused its part.
func TestEndIsRecalled(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive := p.hives["hive"]
	p.set(map[string]string{"depot": "wait"})
	hive.ask(`[["send_request",{"target":"math@depot","subject":"s","body":"x"}],["task_complete",{"finish_message":"done"}]]`, task("t"))
	box := swarm.OutboxKey{Task: key("t"), Peer: "depot"}
	first, _, err := hive.rt.NextDelivery(t.Context(), box)
	if err != nil {
		t.Fatal(err)
	}
	if end, ok, err := hive.rt.NextDelivery(t.Context(), box, first.Wrapper.MessageID); err != nil || !ok || !end.Ending {
		t.Fatalf("no word of the end: %+v, %v", end, err)
	}
	if err := hive.rt.MarkUndeliverable(t.Context(), box, first.Wrapper.MessageID, "refused"); err != nil {
		t.Fatal(err)
	}
	if left, ok, err := hive.rt.NextDelivery(t.Context(), box); ok || err != nil {
		t.Errorf("still to be sent: %+v, %v", left, err)
	}
}

// A swarm that only a contributor has named may not write into the task.
func TestPlantedSwarm(t *testing.T) {
	p := federate(t, "hive", "depot", "thief")
	hive := p.hives["hive"]
	p.set(map[string]string{"depot": "wait"})
	hive.mustPost(requestTo("math@depot", "x"), task("t"))
	eventually(t, "the owner's turn", func() bool { return len(hive.record("t").Task.Requests) == 1 })
	depot := &visitor{post: p, from: "depot", to: "hive", task: hive.record("t").Task}
	if err := depot.send(mail.Broadcast, func(w *mail.Interswarm) {
		w.TaskContributors = append(slices.Clone(w.TaskContributors), "swarm:hive@depot", "swarm:hive@thief")
	}); err != nil {
		t.Fatal(err)
	}
	thief := &visitor{post: p, from: "thief", to: "hive", task: hive.record("t").Task}
	if err := thief.send(mail.Broadcast); !errors.Is(err, swarm.ErrForbidden) {
		t.Errorf("the planted swarm writes: %v, contributors %q", err, thief.task.Contributors)
	}
}

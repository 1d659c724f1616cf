package swarm_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// to gives a post its targets; several make it a broadcast.
func to(targets ...string) func(*swarm.Post) {
	return func(p *swarm.Post) {
		if p.To = targets; len(targets) > 1 {
			p.Type = mail.Broadcast
		}
	}
}

// a post to another swarm's agent is a request in the name of the entrypoint; any
// answer to it completes the task.
func TestRemotePost(t *testing.T) {
	for target, c := range map[string]struct{ caller, body string }{
		"math@depot": {"math@depot", "echo: valves?"},
		"boss@depot": {"boss@depot", "boss got [q] valves?"},
	} {
		t.Run(target, func(t *testing.T) {
			p := federate(t, "hive", "depot")
			hive, depot := p.hives["hive"], p.hives["depot"]
			a := hive.ask("valves?", task("t"), to(target))
			if a.State != swarm.StateCompleted || a.Subject != mail.SubjectTaskComplete || a.Caller != c.caller || a.Body != c.body {
				t.Fatalf("answer = %+v", a)
			}
			eventually(t, "the end at the peer", func() bool {
				return depot.load(guest("depot", "hive", "t")).Task.State == swarm.StateCompleted
			})
			rec := hive.record("t").Task
			if rec.Owner != "user:alice@hive" || len(rec.Requests)+len(rec.RemoteAnswers) > 0 || len(hive.agents.turns()) > 0 {
				t.Errorf("task %+v, turns %q", rec, hive.agents.turns())
			}
			if got := depot.agents.turns(); len(got) != 1 || !strings.HasSuffix(got[0], "<-boss@hive:q") {
				t.Errorf("turns of the peer: %q", got)
			}
			if a := hive.ask("again", task("t"), to(target)); !strings.HasSuffix(a.Body, "again") {
				t.Errorf("second answer = %+v", a)
			}
		})
	}
}

// A stop of either host changes nothing but time.
func TestRemotePostSurvives(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive := p.hives["hive"]
	p.set(map[string]string{"depot": "wait"})
	keyed := func(p *swarm.Post) { p.Key = "k" }
	hive.mustPost("x", task("t"), to("math@depot"), keyed)
	hive.restart()
	if again := hive.mustPost("x", task("t"), to("math@depot"), keyed); !again.Duplicate {
		t.Errorf("the repeat was taken anew: %+v", again)
	}
	list, err := hive.rt.Outboxes(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("Outboxes() = %v, %v", list, err)
	}
	p.set(nil)
	carrier{p, "hive"}.Wake(list[0]) // it is on its way while the host stops
	hive.restart()
	if a := hive.ask("x", task("t"), to("math@depot"), keyed); a.Body != "echo: x" {
		t.Errorf("answer = %+v", a)
	}
}

// A failure at the other swarm ends the task with its reason.
func TestRemotePostFails_R082(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive, depot := p.hives["hive"], p.hives["depot"]
	depot.agents.mu.Lock()
	depot.agents.by["math"] = func(context.Context, *swarm.Turn) swarm.Outcome { return failed(errors.New("broken")) }
	depot.agents.mu.Unlock()
	for name, c := range map[string]struct {
		target, down, want string
	}{
		"an agent that fails": {"math@depot", "", `Swarm "depot" could not answer math@depot: [::agent_error::] agent "math" failed (test): broken`},
		"an unknown agent":    {"nobody@depot", "", "The message to nobody@depot was not delivered: there is no agent 'nobody' in swarm 'depot'"},
		"a peer that is down": {"boss@depot", "no answer for 30s", "The message to boss@depot was not delivered: no answer for 30s. It is kept as dead letter "},
	} {
		if c.down != "" {
			p.set(map[string]string{"depot": c.down})
		}
		a := hive.ask("x", task(name), to(c.target))
		if a.State != swarm.StateFailed || a.Subject != mail.SubjectRouterError || !strings.HasPrefix(a.Body, c.want) {
			t.Errorf("%s: %+v, want %q", name, a, c.want)
		}
		p.set(nil)
	}
}

// A timeout and a cancel end a remote post like any task, and the peer is notified.
func TestRemotePostEnds(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive, depot := p.hives["hive"], p.hives["depot"]
	depot.agents.mu.Lock()
	depot.agents.by["math"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		if turn.PriorAttempt() == nil {
			return asks(turn)
		}
		return swarm.Outcome{}
	}
	depot.agents.mu.Unlock()
	pendings(t, hive.ask("x", task("t"), to("math@depot")))
	p.set(map[string]string{"depot": "wait"})
	r := hive.mustPost("", task("t"), results("yes"))
	if err := hive.rt.CancelTask(t.Context(), key("t"), "alice"); err != nil {
		t.Fatal(err)
	}
	if a := hive.answer(r); a.State != swarm.StateCancelled {
		t.Errorf("cancelled: %+v", a)
	}
	p.set(nil)
	carrier{p, "hive"}.Wake(swarm.OutboxKey{Task: key("t"), Peer: "depot"})
	eventually(t, "the end at the peer", func() bool {
		return depot.load(guest("depot", "hive", "t")).Task.State.Ended()
	})
	p.set(map[string]string{"depot": "wait"})
	a := hive.ask("x", task("u"), to("math@depot"), func(p *swarm.Post) { p.Timeout = time.Millisecond })
	if a.State != swarm.StateTimedOut {
		t.Errorf("timed out: %+v", a)
	}
}

// A contributor's question to a person reaches the one who posted, and its answer
// goes back (G-46).
func TestRemotePostAsks_G46(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive := p.hives["hive"]
	p.humans("depot")
	pendings(t, hive.ask("order?", task("t"), to("math@depot")))
	p.rest()
	hive.restart()
	if a := hive.ask("", task("t"), results("yes")); a.Body != "yes" || a.Caller != "math@depot" {
		t.Errorf("answer = %+v", a)
	}
}

// A broadcast reaches local targets by messages and remote ones by requests, and is
// answered when all remote ones have answered.
func TestRemotePostBroadcast(t *testing.T) {
	p := federate(t, "hive", "depot", "yard")
	hive := p.hives["hive"]
	a := hive.ask("x", task("t"), to("boss", "math@depot", "math@yard", "nobody@yard", "math@depot"))
	for _, part := range []string{"math@depot: echo: x", "math@yard: echo: x", "nobody@yard: ERROR: The message to nobody@yard was not delivered"} {
		if !strings.Contains(a.Body, part) {
			t.Errorf("answer %+v lacks %q", a, part)
		}
	}
	eventually(t, "the end", func() bool { return hive.record("t").Task.State == swarm.StateCompleted })
	if got := hive.agents.turns(); !slices.Equal(got, []string{"boss<-alice:q"}) {
		t.Errorf("turns %q", got)
	}
	if got := p.hives["depot"].agents.turns(); !slices.Equal(got, []string{"math<-boss@hive:q"}) {
		t.Errorf("turns of depot %q", got)
	}
}

// Nothing is sent when one target is refused.
func TestRemotePostRefused(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive := p.hives["hive"]
	def := hive.def
	narrow := func(change func(*swarm.Definition)) {
		d := def
		d.Agents = slices.Clone(def.Agents)
		change(&d)
		if err := hive.rt.ReplaceDefinitions([]swarm.Definition{d}); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		targets []string
		change  func(*swarm.Definition)
		kind    error
		want    string
	}{
		"an unknown swarm": {[]string{"boss", "x@nowhere"}, nil, swarm.ErrNotFound, `cannot send to 'x@nowhere': no peer "nowhere"`},
		"no entrypoint":    {[]string{"math@depot", "math"}, nil, swarm.ErrInvalid, "agent 'math' is not an entrypoint (enable_entrypoint is false)"},
		"all of a swarm":   {[]string{"all@depot"}, nil, swarm.ErrInvalid, "target 'all@depot' is no agent; name those of another swarm one by one"},
		"no address":       {[]string{"a@b@c"}, nil, swarm.ErrInvalid, "target 'a@b@c'"},
		"a closed swarm": {[]string{"math@depot"}, func(d *swarm.Definition) { d.Interswarm = false }, swarm.ErrInvalid,
			"swarm 'hive' sends no mail to other swarms; set [swarm] enable_interswarm = true"},
		"a closed entrypoint": {[]string{"math@depot"}, func(d *swarm.Definition) { d.Agents[0].Interswarm = false }, swarm.ErrInvalid,
			"entrypoint 'boss' may not write to other swarms; set [agents.boss] enable_interswarm = true"},
		"no grant": {[]string{"math@depot"}, func(d *swarm.Definition) { d.Agents[0].Targets = []string{"math"} }, swarm.ErrInvalid,
			"entrypoint 'boss' may not write to 'math@depot'; add it to [agents.boss] comm_targets"},
		"too many": {slices.Repeat([]string{"boss"}, mail.DefaultRecipients+1), nil, swarm.ErrInvalid, "the message has"},
	} {
		if c.change != nil {
			narrow(c.change)
		}
		_, err := hive.post("x", task("t"), to(c.targets...))
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		narrow(func(*swarm.Definition) {})
	}
	several := func(p *swarm.Post) { p.To, p.Type = []string{"boss", "math@depot"}, mail.Request }
	if _, err := hive.post("x", task("t"), several); !errors.Is(err, swarm.ErrInvalid) {
		t.Errorf("a request to two: %v", err)
	}
	if _, err := hive.rt.Task(t.Context(), key("t")); !errors.Is(err, swarm.ErrNotFound) || len(p.wire()) > 0 {
		t.Errorf("something was sent: %v, %q", err, p.wire())
	}
}

// An answer that comes while the task waits for a person is kept until it goes on; a
// stop of the host in between changes nothing.
func TestRemotePostWhilePaused(t *testing.T) {
	begun, open := make(chan struct{}, 1), make(chan struct{})
	close(open)
	p := federate(t, "hive", "depot")
	hive := p.hives["hive"]
	hive.agents.mu.Lock()
	asker(begun, open)(hive)
	hive.agents.mu.Unlock()
	p.set(map[string]string{"depot": "wait"})
	errand := hive.mustPost("x", task("t"), to("math@depot"), func(p *swarm.Post) { p.Key = "k" })
	pendings(t, hive.ask("asks", task("t")))
	p.set(nil)
	carrier{p, "hive"}.Wake(swarm.OutboxKey{Task: key("t"), Peer: "depot"})
	eventually(t, "the answer", func() bool { return len(hive.record("t").Task.RemoteAnswers) == 1 })
	if got := hive.record("t").Task.State; got != swarm.StatePaused {
		t.Errorf("the task is %s", got)
	}
	p.rest()
	hive.restart()
	resumed := hive.mustPost("", task("t"), results("yes"), func(p *swarm.Post) { p.Key = "r" })
	for _, r := range []*swarm.Receipt{resumed, hive.mustPost("x", task("t"), to("math@depot"), func(p *swarm.Post) { p.Key = "k" })} {
		if a := hive.answer(r); a.Body != "echo: x" || a.State != swarm.StateCompleted {
			t.Errorf("answer = %+v", a)
		}
	}
	if errand.Duplicate {
		t.Error("the first post is a repeat")
	}
	p.rest()
	hive.restart()
	again := hive.mustPost("", task("t"), results("yes"), func(p *swarm.Post) { p.Key = "r"; p.Digest = []byte("") })
	if a := hive.answer(again); !again.Duplicate || a.Body != "echo: x" {
		t.Errorf("again: %+v, %+v", again, a)
	}
}

// What an entrypoint here completes does not end a broadcast that others are still to
// answer, whatever host stops in between.
func TestRemotePostBesideOthers(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive := p.hives["hive"]
	p.set(map[string]string{"depot": "wait"})
	r := hive.mustPost("x", task("t"), to("boss", "math@depot"), func(p *swarm.Post) { p.Key = "k" })
	eventually(t, "the entrypoint's turn", func() bool { return len(hive.agents.turns()) == 1 && len(hive.record("t").Rows) == 0 })
	if got := hive.record("t").Task; got.State != swarm.StateRunning || len(got.Requests) != 1 {
		t.Fatalf("the task is %s, open %v", got.State, got.Requests)
	}
	hive.restart()
	p.set(nil)
	carrier{p, "hive"}.Wake(swarm.OutboxKey{Task: key("t"), Peer: "depot"})
	again := hive.mustPost("x", task("t"), to("boss", "math@depot"), func(p *swarm.Post) { p.Key = "k"; p.Digest = []byte("x") })
	if a := hive.answer(again); !again.Duplicate || r.Duplicate || a.Body != "echo: x" || a.Caller != "math@depot" {
		t.Errorf("answer = %+v", a)
	}
}

// Several answers that are large together are shortened with a word about it, in the
// answer alone.
func TestRemotePostLargeAnswers(t *testing.T) {
	p := federate(t, "hive", "depot", "yard")
	long := strings.Repeat("x", 200<<10)
	a := p.hives["hive"].ask(long, task("t"), to("math@depot", "math@yard"))
	if !strings.Contains(a.Body, "echo: x") || !strings.Contains(a.Body, "(an answer of 204806 bytes, which the task's log has)") || len(a.Body) > swarm.MaxBody {
		t.Errorf("an answer of %d bytes", len(a.Body))
	}
}

// A post that waits for an agent elsewhere is not answered by another post's completion,
// also when the host was restarted in between.
func TestRemotePostWaitsAfterRestart(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive := p.hives["hive"]
	p.set(map[string]string{"depot": "wait"})
	hive.mustPost("x", task("t"), to("math@depot"), idem("remote"))
	hive.restart()
	if a := hive.ask("y", task("t"), idem("local")); a.Body != "boss got [q] y" {
		t.Errorf("the local post is answered with %+v", a)
	}
	if open := hive.record("t").Posts; len(open) != 1 || open[0].Key != "remote" {
		t.Fatalf("waiting are %+v, want the remote post", open)
	}
	p.set(nil)
	carrier{p, "hive"}.Wake(swarm.OutboxKey{Task: key("t"), Peer: "depot"})
	if a := hive.answer(hive.mustPost("x", task("t"), to("math@depot"), idem("remote"))); a.Body != "echo: x" {
		t.Errorf("the remote post is answered with %+v", a)
	}
}

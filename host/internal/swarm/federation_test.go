package swarm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// post delivers outbox messages between hives in one process, one at a time for each
// outbox, like a router.
type post struct {
	t     *testing.T
	hives map[string]*hive
	// down are the swarms that do not answer, and lose those whose answer is lost
	// the next time.
	mu   sync.Mutex
	down map[string]string
	lose map[string]bool
	busy map[string]bool
	// sent is what went over the wire: "hive>depot forward request [subject]".
	sent []string
	work sync.WaitGroup
	// closed is set when the hives end.
	closed atomic.Bool
}

// carrier is the post of one hive.
type carrier struct {
	*post
	from string
}

func (c carrier) Check(_ context.Context, _ swarm.InstanceKey, peer string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hives[peer] == nil {
		return fmt.Errorf("no peer %q", peer)
	}
	return nil
}

func (c carrier) Wake(box swarm.OutboxKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := c.from + ">" + box.Peer + box.Task.String()
	if c.busy[name] || c.down[box.Peer] == "wait" {
		return
	}
	c.busy[name] = true
	c.work.Go(func() { c.carry(name, box) })
}

// carry ends when there is nothing left: who wakes it meanwhile is heard.
func (c carrier) carry(name string, box swarm.OutboxKey) {
	from := c.hive(c.from)
	for {
		before := c.restarts()
		p, ok, err := from.runtime().NextDelivery(context.Background(), box)
		if err != nil && c.wasRestarted(before) {
			continue
		}
		if err != nil || !ok {
			c.mu.Lock()
			delete(c.busy, name)
			c.mu.Unlock()
			if _, more, _ := from.runtime().NextDelivery(context.Background(), box); more {
				c.Wake(box)
			}
			return
		}
		if err := c.one(from, box, p); err != nil {
			if (errors.Is(err, swarm.ErrDraining) || c.wasRestarted(before)) && !c.closed.Load() {
				continue
			}
			if !c.closed.Load() {
				c.t.Error(err)
			}
			return
		}
	}
}

func (c carrier) one(from *hive, box swarm.OutboxKey, p swarm.Delivery) error {
	way := "forward"
	if p.Back {
		way = "back"
	}
	c.mu.Lock()
	why, lost := c.down[box.Peer], c.lose[box.Peer]
	delete(c.lose, box.Peer)
	c.sent = append(c.sent, fmt.Sprintf("%s>%s %s %s [%s]", c.from, box.Peer, way, p.Wrapper.Type, p.Wrapper.Payload.Subject))
	c.mu.Unlock()
	if why != "" {
		return from.runtime().MarkUndeliverable(context.Background(), box, p.Wrapper.MessageID, why)
	}
	before := c.restarts()
	got, err := c.hand(c.from, box.Peer, p.Back, p.Wrapper, p.Hops)
	switch {
	case c.closed.Load() || err != nil && c.wasRestarted(before):
		return swarm.ErrDraining
	case err != nil:
		return from.runtime().MarkUndeliverable(context.Background(), box, p.Wrapper.MessageID, err.Error())
	case lost:
		return nil
	}
	return from.runtime().MarkDelivered(context.Background(), box, p.Wrapper.MessageID, got.Runner)
}

// hand gives a wrapper to a swarm as the one that from shows the key of.
func (p *post) hand(from, to string, back bool, w mail.Interswarm, hops int) (swarm.IncomingReceipt, error) {
	if err := w.Validate(); err != nil { // what leaves is what the schema takes
		p.t.Errorf("a wrapper to %s: %v", to, err)
	}
	return p.hive(to).runtime().Receive(context.Background(), swarm.Incoming{
		Principal: swarm.Principal{Tenant: swarm.DefaultTenant, Role: mail.RoleSwarm, ID: from},
		Peer:      from, AnyTenant: true, Swarm: to, Back: back, Wrapper: w, Hops: hops,
	})
}

// restarts counts the beginnings and ends of restarts of all hives.
func (p *post) restarts() (n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.hives {
		n += h.restarts.Load()
	}
	return n
}

// wasRestarted reports whether a hive was or is being restarted since: a message that met it then
// is sent again, as the router does.
func (p *post) wasRestarted(before int64) bool {
	time.Sleep(time.Millisecond)
	return before%2 == 1 || p.restarts() != before
}

func (p *post) hive(name string) *hive {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hives[name]
}

// wire returns what went over it.
func (p *post) wire() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent)
}

func (p *post) set(down map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

// federate makes hives of the names given. Each has a supervisor "boss" and a
// worker "math"; all may write to all.
func federate(t *testing.T, names ...string) *post {
	t.Helper()
	p := &post{t: t, hives: map[string]*hive{}, down: map[string]string{}, lose: map[string]bool{}, busy: map[string]bool{}}
	t.Cleanup(p.work.Wait)
	for _, name := range names {
		h := newHive(t, func(h *hive) {
			h.def.Name, h.def.Interswarm = name, true
			h.def.Agents = h.def.Agents[:2]
			for i := range h.def.Agents {
				a := &h.def.Agents[i]
				a.Interswarm = true
				a.Targets = []string{"boss", "math", "*@*"}
			}
			h.forward = carrier{p, name}
		})
		p.mu.Lock()
		p.hives[name] = h
		p.mu.Unlock()
	}
	t.Cleanup(func() { p.closed.Store(true) })
	return p
}

func requestTo(target, body string) string {
	return fmt.Sprintf(`[["send_request",{"target":%q,"subject":"s","body":%q}],["await_message",{}]]`, target, body)
}

// guest names the task of a peer's in a hive.
func guest(hive, peer, task string) swarm.TaskKey {
	p := swarm.Principal{Tenant: swarm.DefaultTenant, Role: mail.RoleSwarm, ID: peer}
	return swarm.TaskKey{InstanceKey: p.Instance(hive), Task: task}
}

func (h *hive) load(key swarm.TaskKey) swarm.Snapshot {
	h.t.Helper()
	snap, err := h.store.Load(context.Background(), key)
	if err != nil {
		h.t.Fatal(err)
	}
	return snap
}

func has(list []string, part string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, part) })
}

// a request goes forward, its answer comes
// back, and the owner's end closes the task where it was contributed to.
func TestForwardAndBack(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive, depot := p.hives["hive"], p.hives["depot"]
	if a := hive.ask(requestTo("math@depot", "valves?"), task("t")); a.Body != "boss got [Re: s] echo: valves?" {
		t.Fatalf("answer = %+v", a)
	}
	eventually(t, "the end at the contributor", func() bool {
		return depot.load(guest("depot", "hive", "t")).Task.State == swarm.StateCompleted
	})
	want := []string{"hive>depot forward request [s]", "depot>hive back response [Re: s]", "hive>depot back response [::task_complete::]"}
	if got := p.wire(); !slices.Equal(got, want) {
		t.Errorf("the wire had %q, want %q", got, want)
	}
	both := []string{"user:alice@hive", "swarm:hive@depot"}
	for _, task := range []swarm.Task{hive.record("t").Task, depot.load(guest("depot", "hive", "t")).Task} {
		if task.Owner != "user:alice@hive" || !slices.Equal(task.Contributors, both) || len(task.Requests) > 0 {
			t.Errorf("owner %q, contributors %q, open %v", task.Owner, task.Contributors, task.Requests)
		}
	}
	if got := depot.agents.turns(); !slices.Equal(got, []string{"math<-boss@hive:s"}) {
		t.Errorf("turns of the contributor: %q", got)
	}
	// The log shows that the request was delivered. Nothing follows the end in it, also not
	// the delivery of its notice.
	log := names(hive.events("t"))
	if !slices.Contains(log, "interswarm_message_sent") || log[len(log)-1] != "task_complete" {
		t.Errorf("the log has %q", log)
	}
}

// R-035, G-03, G-04: a contributor that completes answers the one who asked, even
// if it has never written to it.
func TestContributorCompletes(t *testing.T) {
	p := federate(t, "hive", "depot")
	a := p.hives["hive"].ask(requestTo("boss@depot", "valves?"), task("t"))
	if want := "boss got [::interswarm_task_complete::] boss got [s] valves?"; a.Body != want {
		t.Fatalf("answer = %+v, want %q", a, want)
	}
	if got := p.wire(); has(got, "depot>hive back response [Re:") || !has(got, "depot>hive back response [::task_complete::]") {
		t.Errorf("the wire had %q", got)
	}
}

// G-39: the second message goes back as soon as the first is acknowledged, in
// order, and mixed recipients all get theirs (G-20).
func TestSwitchToBack(t *testing.T) {
	p := federate(t, "hive", "depot", "yard")
	p.hives["hive"].ask(`[["send_request",{"target":"math@depot","subject":"1","body":"[]"}],`+
		`["send_request",{"target":"math@depot","subject":"2","body":"x"}],`+
		`["send_broadcast",{"targets":["math","math@yard","math@depot","boss@depot"],"subject":"3","body":"y"}],["await_message",{}]]`, task("t"))
	eventually(t, "both broadcasts", func() bool {
		return has(p.wire(), "hive>depot back broadcast") && has(p.wire(), "hive>yard forward broadcast")
	})
	var depot []string
	for _, s := range p.wire() {
		if strings.HasPrefix(s, "hive>depot") {
			depot = append(depot, s)
		}
	}
	want := []string{"hive>depot forward request [1]", "hive>depot back request [2]", "hive>depot back broadcast [3]"}
	if len(depot) < 3 || !slices.Equal(depot[:3], want) {
		t.Errorf("depot was sent %q, want %q first", depot, want)
	}
	if !has(p.wire(), "hive>yard forward broadcast [3]") || !slices.Contains(p.hives["hive"].agents.turns(), "math<-boss:3") {
		t.Errorf("the wire had %q; turns %q", p.wire(), p.hives["hive"].agents.turns())
	}
}

// R-038, G-13: the own swarm's name is local, also in the address of all agents.
func TestOwnNameIsLocal(t *testing.T) {
	p := federate(t, "hive")
	if a := p.hives["hive"].ask(requestTo("math@hive", "x"), task("t")); a.Body != "boss got [Re: s] echo: x" {
		t.Errorf("answer = %+v", a)
	}
	p.hives["hive"].ask(`[["send_broadcast",{"targets":["all@hive"],"subject":"b","body":"y"}],["task_complete",{}]]`, task("u"))
	if got := p.hives["hive"].record("u").Task.Peers; len(got) > 0 || len(p.wire()) > 0 {
		t.Errorf("peers %v, wire %q", got, p.wire())
	}
}

// G-02, G-65: the sender of an undeliverable message gets the reason; the
// message can be sent again.
func TestDeadLetter(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive := p.hives["hive"]
	p.set(map[string]string{"depot": "no answer for 30s"})
	a := hive.ask(requestTo("math@depot", "valves?"), task("t"))
	list, err := hive.rt.DeadLetters(t.Context(), swarm.DefaultTenant, 0, 10)
	if err != nil || len(list) != 1 || list[0].Dead.Reason != "no answer for 30s" {
		t.Fatalf("dead letters %+v, %v", list, err)
	}
	want := "boss got [::router_error::] The message [s] to math@depot was not delivered: no answer for 30s. It is kept as dead letter " + list[0].ID + "."
	if a.Body != want {
		t.Errorf("answer %q, want %q", a.Body, want)
	}
	if got := hive.record("t").Task; len(got.Requests) > 0 {
		t.Errorf("open %v", got.Requests)
	}
	p.set(nil)
	if _, err := hive.rt.ResendDeadLetter(t.Context(), swarm.DefaultTenant, list[0].ID); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the turn of the letter", func() bool { return slices.Contains(p.hives["depot"].agents.turns(), "math<-boss@hive:s") })
	for _, tenant := range []string{swarm.DefaultTenant, "acme"} {
		if _, err := hive.rt.ResendDeadLetter(t.Context(), tenant, list[0].ID); !errors.Is(err, swarm.ErrNotFound) {
			t.Errorf("Resend again, by %s = %v", tenant, err)
		}
	}
}

// An unknown agent at the peer is a refusal that reaches the sender.
func TestUnknownRemoteAgent(t *testing.T) {
	p := federate(t, "hive", "depot")
	a := p.hives["hive"].ask(requestTo("nobody@depot", "x"), task("t"))
	if !strings.Contains(a.Body, "::router_error::") || !strings.Contains(a.Body, "there is no agent 'nobody' in swarm 'depot'") {
		t.Errorf("answer = %+v", a)
	}
	a = p.hives["hive"].ask(requestTo("math@nowhere", "x"), task("u"))
	if !strings.Contains(a.Body, "::router_error::") || !strings.Contains(a.Body, `no peer "nowhere"`) {
		t.Errorf("answer = %+v", a)
	}
}

// A message whose acknowledgement is lost arrives twice and counts once.
func TestDeliveredTwice(t *testing.T) {
	p := federate(t, "hive", "depot")
	p.mu.Lock()
	p.lose["depot"], p.lose["hive"] = true, true
	p.mu.Unlock()
	a := p.hives["hive"].ask(requestTo("math@depot", "x"), task("t"))
	if a.Body != "boss got [Re: s] echo: x" {
		t.Fatalf("answer = %+v", a)
	}
	if got := p.hives["depot"].agents.turns(); !slices.Equal(got, []string{"math<-boss@hive:s"}) {
		t.Errorf("turns = %q", got)
	}
	if got := p.wire(); got[0] != got[1] {
		t.Errorf("the wire had %q", got)
	}
}

// Outbox messages survive their host: the next one delivers them, also for ended tasks.
func TestOutboxSurvives(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive := p.hives["hive"]
	p.set(map[string]string{"depot": "wait"})
	hive.mustPost(requestTo("math@depot", "x"), task("t"))
	eventually(t, "a letter", func() bool { list, _ := hive.rt.Outboxes(t.Context()); return len(list) == 1 })
	hive.restart()
	list, err := hive.rt.Outboxes(t.Context())
	if err != nil || !slices.Equal(list, []swarm.OutboxKey{{Task: swarm.TaskKey{InstanceKey: alice().Instance("hive"), Task: "t"}, Peer: "depot"}}) {
		t.Fatalf("Outboxes() = %v, %v", list, err)
	}
	p.set(nil)
	carrier{p, "hive"}.Wake(list[0])
	eventually(t, "the answer", func() bool { return hive.record("t").Task.State == swarm.StateCompleted })
}

// A contributor whose turn fails, or that stalls with a request open, reports it;
// afterwards it has no message to wait for.
func TestContributorFails(t *testing.T) {
	for name, c := range map[string]struct {
		math behave
		want string
	}{
		"turn":  {func(context.Context, *swarm.Turn) swarm.Outcome { return failed(errors.New("broken")) }, `[::agent_error::] agent "math" failed (test): broken`},
		"stall": {func(context.Context, *swarm.Turn) swarm.Outcome { return swarm.Outcome{} }, "[::runtime_error::] stalled"},
	} {
		t.Run(name, func(t *testing.T) {
			p := federate(t, "hive", "depot")
			p.hives["depot"].agents.mu.Lock()
			p.hives["depot"].agents.by["math"] = c.math
			p.hives["depot"].agents.mu.Unlock()
			a := p.hives["hive"].ask(requestTo("math@depot", "x"), task("t"))
			if !strings.HasPrefix(a.Body, `boss got [::router_error::] Swarm "depot" could not answer math@depot: `+c.want) {
				t.Errorf("answer = %+v", a)
			}
		})
	}
}

// A task passes over two hosts, and each host gets the answer from the one it called.
func TestThreeSwarms(t *testing.T) {
	p := federate(t, "hive", "depot", "yard")
	p.hives["depot"].agents.mu.Lock()
	p.hives["depot"].agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		if m := incoming(turn); m.Type == mail.Response {
			call(turn, mail.ToolTaskComplete, obj{"finish_message": "via depot: " + m.Payload.Body})
			return swarm.Outcome{}
		}
		call(turn, mail.ToolSendRequest, obj{"target": "math@yard", "subject": "on", "body": "x"})
		return swarm.Outcome{}
	}
	p.hives["depot"].agents.mu.Unlock()
	a := p.hives["hive"].ask(requestTo("boss@depot", "x"), task("t"))
	if a.Body != "boss got [::interswarm_task_complete::] via depot: echo: x" {
		t.Fatalf("answer = %+v", a)
	}
	eventually(t, "the end in the third swarm", func() bool {
		return p.hives["yard"].load(guest("yard", "depot", "t")).Task.State == swarm.StateCompleted
	})
	yard := p.hives["yard"].load(guest("yard", "depot", "t")).Task
	if want := []string{"user:alice@hive", "swarm:hive@depot", "swarm:depot@yard"}; !slices.Equal(yard.Contributors, want) || yard.Hops != 2 {
		t.Errorf("contributors %q, hops %d", yard.Contributors, yard.Hops)
	}
}

// foreign is a wrapper as a peer may send it.
func foreign(task string, change ...func(*mail.Interswarm)) mail.Interswarm {
	w := mail.Interswarm{
		MessageID: "1c9d0000-0000-4000-8000-000000000001", SourceSwarm: "depot", TargetSwarm: "hive", Timestamp: mail.FormatTime(time.Unix(1e9, 0)),
		Type: mail.Request, TaskOwner: "user:u@depot", TaskContributors: []string{"user:u@depot"},
		Payload: mail.Payload{
			TaskID: task, ID: "1c9d0000-0000-4000-8000-000000000002", Sender: mail.Address{Type: mail.Agent, Name: "chief@depot"},
			Recipients: []mail.Address{{Type: mail.Agent, Name: "math@hive"}}, Subject: "s", Body: "[]", RecipientSwarms: []string{"hive"},
		},
	}
	for _, c := range change {
		c(&w)
	}
	return w
}

// Wrappers that must not come in (G-40, G-70): nothing changes (G-031).
func TestRefusedWrappers(t *testing.T) {
	p := federate(t, "hive", "depot", "thief")
	hive := p.hives["hive"]
	p.set(map[string]string{"depot": "wait"})
	hive.mustPost(requestTo("math@depot", "x"), task("own"))
	eventually(t, "the owner's turn", func() bool { return len(hive.record("own").Task.Requests) == 1 })
	before := hive.record("own")
	if _, err := p.hand("depot", "hive", false, foreign("theirs"), 1); err != nil {
		t.Fatal(err)
	}
	own := func(w *mail.Interswarm) {
		w.TaskOwner, w.TaskContributors = "user:alice@hive", []string{"user:alice@hive", "swarm:hive@thief", "swarm:hive@depot"}
	}
	for name, c := range map[string]struct {
		from string
		back bool
		hops int
		task string
		edit func(*mail.Interswarm)
		want error
	}{
		"another swarm's key in a user's task": {"thief", true, 0, "own", own, swarm.ErrForbidden},
		"another owner":                        {"depot", true, 0, "own", func(w *mail.Interswarm) { own(w); w.TaskOwner = "user:eve@hive" }, swarm.ErrForbidden},
		"a forged completion":                  {"thief", true, 0, "own", func(w *mail.Interswarm) { own(w); w.Payload.Subject = mail.SubjectTaskComplete; w.Type = mail.Response }, swarm.ErrForbidden},
		"an unknown task":                      {"depot", true, 0, "none", own, swarm.ErrNotFound},
		"another instance":                     {"depot", true, 0, "own", func(w *mail.Interswarm) { own(w); w.TaskContributors[0] = "admin:alice@hive" }, swarm.ErrNotFound},
		"no instance of ours":                  {"depot", true, 0, "own", func(w *mail.Interswarm) { w.TaskContributors = []string{"user:u@depot"} }, swarm.ErrNotFound},
		"a bad instance":                       {"depot", true, 0, "own", func(w *mail.Interswarm) { w.TaskContributors = []string{"agent:x@hive"} }, swarm.ErrInvalid},
		"our own task forward":                 {"depot", false, 0, "own", own, swarm.ErrInvalid},
		"a forged sender":                      {"depot", false, 0, "new", func(w *mail.Interswarm) { w.Payload.Sender.Name = "chief@thief" }, swarm.ErrForbidden},
		"a forged system":                      {"depot", false, 0, "new", func(w *mail.Interswarm) { w.Payload.Sender = mail.Address{Type: mail.System, Name: "hive"} }, swarm.ErrForbidden},
		"a user":                               {"depot", false, 0, "new", func(w *mail.Interswarm) { w.Payload.Sender.Type = mail.User }, swarm.ErrInvalid},
		"a sender of two swarms":               {"depot", false, 0, "new", func(w *mail.Interswarm) { w.Payload.Sender.Name = "boss@hive@depot" }, swarm.ErrInvalid},
		"a sender without a name":              {"depot", false, 0, "new", func(w *mail.Interswarm) { w.Payload.Sender.Name = "@depot" }, swarm.ErrInvalid},
		"a system's plain word":                {"depot", false, 0, "theirs", func(w *mail.Interswarm) { w.Payload.Sender = mail.Address{Type: mail.System, Name: "depot"} }, swarm.ErrInvalid},
		"a system's local word": {"depot", false, 0, "theirs", func(w *mail.Interswarm) {
			w.Payload.Sender = mail.Address{Type: mail.System, Name: "depot"}
			w.Payload.Subject = mail.SubjectMaximumStepsReached
		}, swarm.ErrInvalid},
		"a fault of a task that is not": {"depot", false, 0, "new", func(w *mail.Interswarm) {
			w.Payload.Sender = mail.Address{Type: mail.System, Name: "depot"}
			w.Payload.Subject = mail.SubjectAgentError
		}, swarm.ErrNotFound},
		"an end of a task that is not": {"depot", false, 0, "new", func(w *mail.Interswarm) { w.Payload.Subject = mail.SubjectTaskComplete }, swarm.ErrNotFound},
		"a reserved subject":           {"depot", false, 0, "new", func(w *mail.Interswarm) { w.Payload.Subject = "::agent_error::" }, swarm.ErrInvalid},
		"an unknown agent":             {"depot", false, 0, "new", func(w *mail.Interswarm) { w.Payload.Recipients[0].Name = "nobody@hive" }, swarm.ErrNotFound},
		"another swarm's agent":        {"depot", false, 0, "new", func(w *mail.Interswarm) { w.Payload.Recipients[0].Name = "math@yard" }, swarm.ErrInvalid},
		"too many hops":                {"depot", false, swarm.MaxHops + 1, "new", func(*mail.Interswarm) {}, swarm.ErrInvalid},
		"a long body":                  {"depot", false, 0, "new", func(w *mail.Interswarm) { w.Payload.Body = strings.Repeat("x", swarm.MaxBody+1) }, swarm.ErrInvalid},
		"a used id":                    {"depot", false, 0, "new", func(w *mail.Interswarm) { w.MessageID = "1c9d0000-0000-4000-8000-000000000001" }, swarm.ErrConflict},
	} {
		w := foreign(c.task, func(w *mail.Interswarm) { w.MessageID = "1c9d0000-0000-4000-8000-00000000000a"; w.SourceSwarm = c.from }, c.edit)
		if got, err := p.hand(c.from, "hive", c.back, w, c.hops); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v, want %v", name, got, err, c.want)
		}
	}
	if after := hive.record("own"); after.Task.Cursor != before.Task.Cursor || len(after.Rows) != len(before.Rows) {
		t.Errorf("the task has changed: %+v", after)
	}
	if _, err := hive.rt.Task(t.Context(), guest("hive", "depot", "new")); !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("a refused wrapper has made a task: %v", err)
	}
}

// A wrapper that continues a task uses the definition of the task's tenant, not the one
// of the key's tenant, and no answer discloses which tenants exist.
func TestBackToAnotherTenant(t *testing.T) {
	p := federate(t, "hive", "depot")
	p.set(map[string]string{"depot": "wait"})
	hive := p.hives["hive"]
	hive.also = []string{"acme"}
	hive.restart()
	bob := swarm.Principal{Tenant: "acme", Role: mail.RoleUser, ID: "bob"}
	own := swarm.TaskKey{InstanceKey: bob.Instance("hive"), Task: "t"}
	hive.mustPost(requestTo("math@depot", "x"), task("t"), func(post *swarm.Post) { post.Principal = bob })
	eventually(t, "the owner's turn", func() bool {
		snap, err := hive.store.Load(t.Context(), own)
		return err == nil && len(snap.Task.Requests) == 1
	})
	rec := hive.load(own).Task
	back := func(id, contributor string) (swarm.IncomingReceipt, error) {
		return p.hand("depot", "hive", true, foreign("t", func(w *mail.Interswarm) {
			w.MessageID, w.Type, w.TaskOwner, w.TaskContributors = id, mail.Response, rec.Owner, []string{contributor}
		}), 0)
	}
	open := func(tenant string, is bool) {
		def := hive.def
		def.Tenant, def.Interswarm = tenant, is
		if err := hive.rt.ReplaceDefinitions([]swarm.Definition{def}); err != nil {
			t.Fatal(err)
		}
	}
	open("acme", false)
	if got, err := back("1c9d0000-0000-4000-8000-00000000000a", rec.Owner); !errors.Is(err, swarm.ErrInvalid) {
		t.Errorf("a tenant that takes no mail: %+v, %v", got, err)
	}
	open("acme", true)
	open(swarm.DefaultTenant, false)
	if got, err := back("1c9d0000-0000-4000-8000-00000000000b", rec.Owner); err != nil || got.Task != own {
		t.Errorf("a tenant that takes mail: %+v, %v", got, err)
	}
	_, none := back("1c9d0000-0000-4000-8000-00000000000c", strings.Replace(rec.Owner, "bob", "eve", 1))
	open(swarm.DefaultTenant, true)
	_, ghost := back("1c9d0000-0000-4000-8000-00000000000d", strings.Replace(rec.Owner, "acme", "ghost", 1))
	if !errors.Is(ghost, swarm.ErrNotFound) || none == nil || ghost.Error() != none.Error() {
		t.Errorf("a tenant that is not: %v; a task that is not: %v", ghost, none)
	}
}

// A completion counts only from the owner, or for an open request.
func TestCompletionThatNobodyAsked(t *testing.T) {
	p := federate(t, "hive", "depot", "yard")
	hive := p.hives["hive"]
	hive.mustPost(`[["send_request",{"target":"math@depot","subject":"1","body":"[]"}],["send_broadcast",{"targets":["math@yard"],"subject":"2","body":"x"}],["await_message",{}]]`, task("t"))
	eventually(t, "both at work", func() bool { return len(hive.record("t").Task.Contributors) == 3 })
	task := hive.record("t").Task
	w := foreign("t", func(w *mail.Interswarm) {
		w.SourceSwarm, w.Type, w.TaskOwner, w.TaskContributors = "yard", mail.Response, task.Owner, task.Contributors
		w.Payload.Sender.Name, w.Payload.Subject = "math@yard", mail.SubjectTaskComplete
	})
	if _, err := p.hand("yard", "hive", true, w, 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the stalled contributor's word", func() bool { return hive.record("t").Task.State != swarm.StateRunning })
	if got := hive.agents.turns(); has(got, "task_complete") {
		t.Errorf("turns %q", got)
	}
}

// A peer's wrapper may be poor: no ids of ours, bare names, a message id that is no
// UUID.
func TestPoorWrapper(t *testing.T) {
	p := federate(t, "hive", "depot")
	p.set(map[string]string{"depot": "gone"})
	w := foreign("their task", func(w *mail.Interswarm) {
		w.MessageID, w.Payload.Sender.Name, w.Payload.Recipients[0].Name = "m1", "chief", "math"
		w.TaskOwner, w.TaskContributors = "agent:remote@depot", []string{"agent:remote@depot", "user:nobody@hive"}
	})
	got, err := p.hand("depot", "hive", false, w, 0)
	if err != nil || got.Runner != "swarm:depot@hive" || got.Duplicate {
		t.Fatalf("Receive() = %+v, %v", got, err)
	}
	again, err := p.hand("depot", "hive", false, w, 0)
	if err != nil || !again.Duplicate || again.Runner != got.Runner {
		t.Errorf("Receive() again = %+v, %v", again, err)
	}
	rec := p.hives["hive"].load(guest("hive", "depot", "their task")).Task
	if want := []string{"agent:remote@depot", "swarm:depot@hive"}; !slices.Equal(rec.Contributors, want) || rec.Caller != "depot" {
		t.Errorf("contributors %q, caller %q", rec.Contributors, rec.Caller)
	}
}

package swarm_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// numbered gives a hive's definition a digest.
func numbered(h *hive) { h.def.Digest = "one" }

// second is a definition without math, in which boss may write to sums.
func (h *hive) second() swarm.Definition {
	def := h.def
	def.Digest = "two"
	def.Agents = slices.Clone(def.Agents)
	def.Agents[0].Targets = []string{"sums", "text"}
	def.Agents[1] = swarm.Agent{Name: "sums", Targets: []string{"boss"}}
	return def
}

func askFor(target string) string {
	return `[["send_request",{"target":"` + target + `","subject":"s","body":"hello"}],["await_message",{}]]`
}

// fakeLibrary is a library.
type fakeLibrary struct {
	defs  []swarm.Definition
	asked atomic.Int64
	err   error
}

func (s *fakeLibrary) Definition(_ context.Context, _, _, digest string) (*swarm.Definition, error) {
	s.asked.Add(1)
	for _, def := range s.defs {
		if def.Digest == digest {
			return &def, nil
		}
	}
	if s.err != nil {
		return nil, s.err
	}
	return nil, swarm.ErrNotFound
}

// held makes boss wait in its first turn; the post is under way when it returns.
func (h *hive) held(body string) (r *swarm.Receipt, release func()) {
	h.t.Helper()
	entered, gate := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		if first.CompareAndSwap(false, true) {
			close(entered)
			select {
			case <-gate:
			case <-ctx.Done():
				return failed(context.Cause(ctx))
			}
		}
		return script(ctx, turn)
	}
	r = h.mustPost(body, task("old"))
	<-entered
	return r, func() { close(gate) }
}

func wantBody(t *testing.T, a swarm.Answer, want string) {
	t.Helper()
	if a.Body != want {
		t.Errorf("%+v, want %q", a, want)
	}
}

const echoed = "boss got [Re: s] echo: hello"

// A task that runs finishes on what it was begun with, new ones go by the new
// definition, and the old one by it too when it is posted to after its end.
func TestReplace(t *testing.T) {
	t.Parallel()
	h := newHive(t, numbered)
	r, release := h.held(askFor("math"))
	if err := h.rt.ReplaceDefinitions([]swarm.Definition{h.second()}); err != nil {
		t.Fatal(err)
	}
	wantBody(t, h.ask(askFor("sums"), task("new")), echoed)
	if used := h.rt.DefinitionsInUse(); !used["one"] || !used["two"] {
		t.Errorf("in use are %v", used)
	}
	release()
	wantBody(t, h.answer(r), echoed)
	if a := h.ask(askFor("math"), task("old")); !strings.Contains(a.Body, `may not write to "math"`) {
		t.Errorf("posted to again: %+v", a)
	}
	if got := h.record("old").Task.Definition; got != "two" {
		t.Errorf("the task names %q", got)
	}
	eventually(t, "nothing uses the old definition", func() bool { return !h.rt.DefinitionsInUse()["one"] })
}

// A task has the tools of its definition, in force or older, and of its instance.
func TestReplaceKeepsTools(t *testing.T) {
	t.Parallel()
	h := newHive(t, numbered, func(h *hive) {
		h.def.Interswarm, h.def.Agents[0].Interswarm = true, true
	})
	tools := make(chan string, 8)
	entered, gate := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		var in struct{ Tools json.RawMessage }
		if err := json.Unmarshal(turn.Input(), &in); err != nil {
			t.Error(err)
		}
		tools <- string(in.Tools)
		if first.CompareAndSwap(false, true) {
			close(entered)
			<-gate
		}
		return script(ctx, turn)
	}
	admin := func(p *swarm.Post) {
		p.Principal = swarm.Principal{Tenant: swarm.DefaultTenant, Role: mail.RoleAdmin, ID: "ada"}
	}
	r := h.mustPost(askFor("math"), task("old"), admin)
	<-entered
	if err := h.rt.ReplaceDefinitions([]swarm.Definition{h.second()}); err != nil {
		t.Fatal(err)
	}
	close(gate)
	wantBody(t, h.answer(r), echoed)
	wantBody(t, h.ask(askFor("sums"), task("new")), echoed)
	before, after, other := <-tools, <-tools, <-tools
	if before != after || !strings.Contains(before, `"name":"discover_swarms"`) {
		t.Errorf("the tools of the older definition were\n%s\nand are\n%s", before, after)
	}
	if !strings.Contains(other, `"sums"`) || strings.Contains(other, `"name":"discover_swarms"`) {
		t.Errorf("the tools of the new definition are\n%s", other)
	}
}

// A restart finds the definition of an unfinished task in the library, or logs that it
// is gone.
func TestReplaceSurvivesRestart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gone bool
		want string
	}{"kept": {want: echoed}, "gone": {gone: true, want: `boss got [::invalid_recipient::] agent "boss" may not write to "math"; add it to [agents.boss] comm_targets`}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			library := &fakeLibrary{}
			h := newHive(t, numbered, func(h *hive) { h.opt.Library = library })
			_, release := h.held(askFor("math"))
			if !c.gone {
				library.defs = []swarm.Definition{h.def}
			}
			h.stop()
			release()
			h.agents.by = map[string]behave{}
			h.def = h.second()
			h.start()
			// The answer to a post without a waiter is in the log.
			eventually(t, "the task has ended", func() bool { return h.record("old").Task.State.Ended() })
			var answer swarm.Answer
			for _, e := range h.events("old") {
				if a, ok := e.Answer(); ok {
					answer = a
				}
			}
			wantBody(t, answer, c.want)
			if library.asked.Load() != 1 {
				t.Errorf("the library was asked %d times", library.asked.Load())
			}
		})
	}
}

// Mail for an agent that a new definition does not have ends in an error with this
// reason.
func TestReplaceWithoutAgent(t *testing.T) {
	t.Parallel()
	h := newHive(t, numbered)
	h.agents.by["math"] = func(ctx context.Context, _ *swarm.Turn) swarm.Outcome {
		<-ctx.Done()
		return failed(context.Cause(ctx))
	}
	r := h.mustPost(askFor("math"), task("t"))
	eventually(t, "math is at work", func() bool {
		return slices.ContainsFunc(h.agents.turns(), func(turn string) bool { return strings.HasPrefix(turn, "math<-") })
	})
	if err := h.rt.CancelTask(t.Context(), r.Task, "alice"); err != nil {
		t.Fatal(err)
	}
	h.answer(r)
	if err := h.rt.ReplaceDefinitions([]swarm.Definition{h.second()}); err != nil {
		t.Fatal(err)
	}
	h.mustPost("[]", task("t"))
	told := func(e swarm.Event) bool {
		return strings.Contains(string(e.Extra), mail.SubjectAgentError) && strings.Contains(string(e.Extra), `agent \"math\" is no longer part of swarm \"hive\"`) ||
			strings.Contains(string(e.Extra), `agent \\\"math\\\" is no longer part of swarm`)
	}
	eventually(t, "the sender is told", func() bool {
		return h.record("t").Task.State.Ended() && slices.ContainsFunc(h.events("t"), told)
	})
}

// pauseOldTask begins the task "old", which pauses. When it is resumed, boss writes to math and
// completes it with what it was told.
func (h *hive) pauseOldTask() {
	h.t.Helper()
	h.agents.by["boss"] = func(_ context.Context, t *swarm.Turn) swarm.Outcome {
		if t.PriorAttempt() == nil {
			return asks(t)
		}
		said := call(t, mail.ToolSendRequest, obj{"target": "math", "subject": "s", "body": "hello"})
		call(t, mail.ToolTaskComplete, obj{"finish_message": said})
		return swarm.Outcome{}
	}
	if a := h.ask("asks", task("old")); a.State != swarm.StatePaused {
		h.t.Fatalf("%+v", a)
	}
}

// A task that is paused goes on with what is left of what it was begun with, also
// after definitions were looked through.
func TestReplaceNarrows(t *testing.T) {
	t.Parallel()
	h := newHive(t, numbered, func(h *hive) { h.def.Agents[1].Entrypoint = true })
	h.pauseOldTask()
	less := h.def
	less.Tenant = ""
	less.Agents = slices.Clone(less.Agents)
	less.Agents[0].Targets, less.Agents[1].Entrypoint = []string{"text"}, false
	bad := less
	bad.Agents = nil
	if err := h.rt.ReplaceDefinitions([]swarm.Definition{h.second()}, bad); err == nil {
		t.Error("what is left of a definition is no swarm")
	}
	if err := h.rt.ReplaceDefinitions([]swarm.Definition{h.second()}, less); err != nil {
		t.Fatal(err)
	}
	h.rt.ForgetDefinitions(func(digest string) bool { return digest == "one" })
	if _, err := h.post("hello", task("old"), func(p *swarm.Post) { p.Entrypoint = "math" }); err == nil || !strings.Contains(err.Error(), "agent 'math' is not an entrypoint") {
		t.Error(err)
	}
	if a := h.ask("", task("old"), results("yes")); !strings.Contains(a.Body, `may not write to "math"`) {
		t.Errorf("%+v", a)
	}
	if got := h.record("old").Task.Definition; got != "one" {
		t.Errorf("the task names %q", got)
	}
}

// narrowingLibrary gives a definition as it was before a reload that ends while it is read,
// and narrowed from then on.
type narrowingLibrary struct {
	before, after swarm.Definition
	reload        func()
	reads         atomic.Int64
}

func (l *narrowingLibrary) Definition(context.Context, string, string, string) (*swarm.Definition, error) {
	def := l.before
	if l.reads.Add(1) > 1 {
		def = l.after
	} else {
		l.reload()
	}
	return &def, nil
}

// A reload that narrows a task's definition while the task is taken up holds for it: what
// was read before the reload is read again.
func TestReloadBesideTakeUp(t *testing.T) {
	t.Parallel()
	h := newHive(t, numbered)
	h.pauseOldTask()
	less := h.def
	less.Agents = slices.Clone(less.Agents)
	less.Agents[0].Targets = []string{"text"}
	library := &narrowingLibrary{before: h.def, after: less}
	h.def, h.opt.Library = h.second(), library
	h.restart()
	library.reload = func() {
		narrowed := less
		narrowed.Tenant = ""
		if err := h.rt.ReplaceDefinitions([]swarm.Definition{h.def}, narrowed); err != nil {
			t.Error(err)
		}
	}
	if a := h.ask("", task("old"), results("yes")); !strings.Contains(a.Body, `may not write to "math"`) {
		t.Errorf("%+v", a)
	}
	if n := library.reads.Load(); n != 2 {
		t.Errorf("read %d times", n)
	}
}

// A definition that is no swarm changes nothing; a library that cannot be read
// fails the post, not the host.
func TestReplaceRefused(t *testing.T) {
	t.Parallel()
	library := &fakeLibrary{err: errors.New("disk on fire")}
	h := newHive(t, numbered, func(h *hive) { h.opt.Library = library })
	bad := h.second()
	bad.Entrypoint = "nobody"
	if err := h.rt.ReplaceDefinitions([]swarm.Definition{h.second(), bad}); err == nil || !strings.Contains(err.Error(), `entrypoint "nobody"`) {
		t.Error(err)
	}
	other := h.second()
	other.Tenant = "acme"
	if err := h.rt.ReplaceDefinitions([]swarm.Definition{other}); err == nil || !strings.Contains(err.Error(), `tenant "acme" has no swarm`) {
		t.Error(err)
	}
	wantBody(t, h.ask(askFor("math")), echoed)
}

package capability

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/abi"
	"skep/host/internal/schema"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
	"skep/spec/mail"
)

// guest is a module in Go.
type guest struct {
	digest string
	turn   func(g *visit)
}

func (g guest) Digest() string { return g.digest }

func (g guest) Turn(ctx context.Context, t turn.Turn) turn.Result {
	v := &visit{ctx: ctx, t: t}
	if err := json.Unmarshal(t.Input, &v.in); err != nil {
		return turn.Result{Exit: &turn.Exit{Kind: turn.ExitHost, Message: err.Error()}}
	}
	if err := t.CPU.Acquire(ctx); err != nil {
		return turn.Result{Exit: &turn.Exit{Kind: turn.ExitCancelled, Message: err.Error()}}
	}
	defer t.CPU.Release()
	g.turn(v)
	if ctx.Err() != nil {
		return turn.Result{CPU: v.cpu, Exit: &turn.Exit{Kind: turn.ExitCancelled, Message: context.Cause(ctx).Error()}}
	}
	return turn.Result{Output: v.output, Fuel: 100, CPU: v.cpu}
}

// visit is one turn of a guest.
type visit struct {
	ctx    context.Context
	t      turn.Turn
	in     abi.TurnInput
	output []byte
	cpu    time.Duration // that it has computed
}

func (v *visit) call(op abi.Op, req string) string {
	if v.ctx.Err() != nil {
		return "over"
	}
	body, fault := v.t.Ops.Call(v.ctx, op, []byte(req))
	if fault != nil {
		return fault.Error()
	}
	return string(body)
}

func (v *visit) mail(tool string, args any) string {
	raw, _ := json.Marshal(map[string]any{"tool": tool, "args": args})
	return v.call(abi.OpMail, string(raw))
}

type obj = map[string]any

// mixed is what both agents of the crash test do: mail between effects.
func mixed(v *visit) {
	m, err := mail.ParseMessage(v.in.Message)
	if err != nil {
		panic(err)
	}
	name := v.in.Agent.Address
	v.call(abi.OpLog, `{"message":"begin"}`)
	switch {
	case name == "math":
		got := v.call(abi.OpHTTPFetch, "three")
		v.mail(mail.ToolSendResponse, obj{"target": "boss", "subject": "s", "body": got})
	case m.Payload.Sender.Type == mail.User:
		v.call(abi.OpHTTPFetch, "one")
		v.mail(mail.ToolSendRequest, obj{"target": "nobody", "subject": "s", "body": "x"})
		v.mail(mail.ToolSendRequest, obj{"target": "math", "subject": "s", "body": v.call(abi.OpRandom, "{}")[:3]})
		got := v.call(abi.OpHTTPFetch, "two")
		v.mail(mail.ToolAwaitMessage, obj{"reason": got})
	case m.Payload.Sender.Type == mail.Agent:
		v.mail(mail.ToolTaskComplete, obj{"finish_message": m.Payload.Body + " and " + v.call(abi.OpHTTPFetch, "four")})
	}
	v.output, _ = json.Marshal(abi.TurnResult{Notes: []string{"seen by " + name}})
}

// testRecipe is the recipe of all test records.
const testRecipe = "image-1-meter-test"

// mortal is a store that dies at its n-th durable write, before or behind it.
type mortal struct {
	swarm.Store
	behind bool
	dies   int64
	n      atomic.Int64
	dead   atomic.Bool
}

// write counts a durable write and does it, unless the store is dead.
func (m *mortal) write(do func() error) error {
	if m.dead.Load() {
		return swarm.ErrFenced
	}
	if m.n.Add(1) != m.dies {
		return do()
	}
	if m.behind {
		if err := do(); err != nil {
			return err
		}
	}
	m.dead.Store(true)
	return swarm.ErrFenced
}

func (m *mortal) Commit(ctx context.Context, s swarm.Mutation) error {
	return m.write(func() error { return m.Store.Commit(ctx, s) })
}

func (m *mortal) Accept(ctx context.Context, s swarm.Mutation, sub swarm.Submission) (got swarm.Submission, err error) {
	err = m.write(func() error { got, err = m.Store.Accept(ctx, s, sub); return err })
	return got, err
}

func (m *mortal) Journal(ctx context.Context, key swarm.TaskKey, turn int64, w swarm.JournalWrite) (ok bool, err error) {
	err = m.write(func() error { ok, err = m.Store.Journal(ctx, key, turn, w); return err })
	return ok, err
}

type noTools struct{ set *schema.Set }

func (b noTools) Tools() (tools []abi.Tool) {
	for _, t := range b.set.Tools() {
		tools = append(tools, abi.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	return tools
}

func (b noTools) ToolArgs(tool string, args []byte) error { return b.set.ToolArgs(tool, args) }

// host is a runtime with modules in Go on a real store.
type host struct {
	t       *testing.T
	dir     string
	world   world
	modules map[string]Module // by agent
	find    Modules
	allow   Allow
	web     Fetcher // nil for the world
	models  map[string]Model
	actions map[string]*Action // of the boss
	forms   map[string]ArgsCheck
	tenants map[string]swarm.Tenant
	forward swarm.Forwarder
	near    swarm.KnownSwarms
	wrap    func(swarm.Store) swarm.Store
	change  func(*swarm.Definition)
	cluster swarm.Cluster // nil for a host that works on all tasks
	// observer sees what is committed, with traces; nil for none.
	observer swarm.Observer
	def      swarm.Definition
	// hibernates is set if no turn keeps its sandbox while it waits.
	hibernates bool
	exec       *Executor
	store      *mortal
	rt         *swarm.Runtime
	stop       func()
}

func newHost(t *testing.T) *host {
	g := guest{"m1", mixed}
	return &host{t: t, dir: t.TempDir(), forward: swarm.NoForwarder{}, modules: map[string]Module{"boss": g, "math": g}}
}

func (h *host) start(dies int64, behind bool) {
	h.t.Helper()
	ctx := context.Background()
	st, err := sqlite.Open(ctx, h.dir, sqlite.Options{})
	if err != nil {
		h.t.Fatal(err)
	}
	set, err := schema.Load()
	if err != nil {
		h.t.Fatal(err)
	}
	h.store = &mortal{Store: st, dies: dies, behind: behind}
	x := NewExecutor(h.bindings(), h.find, testRecipe)
	h.exec = x
	if h.hibernates {
		x.WaitingTurns().Bound(0, time.Millisecond)
	}
	if h.web == nil {
		x.ops[abi.OpHTTPFetch] = worldly(&h.world)[abi.OpHTTPFetch]
	}
	def := swarm.Definition{
		Tenant: swarm.DefaultTenant, Name: "hive", Entrypoint: "boss",
		Agents: []swarm.Agent{
			{Name: "boss", Targets: []string{"math"}, Entrypoint: true, CanComplete: true},
			{Name: "math", Targets: []string{"boss"}},
		},
	}
	if h.change != nil {
		h.change(&def)
	}
	h.def = def
	var store swarm.Store = h.store
	if h.wrap != nil {
		store = h.wrap(store)
	}
	opt := swarm.Options{KnownSwarms: h.near, Tenants: swarm.NewTenantSet(h.tenants), Cluster: h.cluster, Observer: h.observer}
	if h.observer != nil {
		opt.Sample = func([16]byte) bool { return true }
	}
	h.rt, err = swarm.New(ctx, store, x, h.forward, noTools{set}, []swarm.Definition{def}, opt)
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- h.rt.Run(ctx, time.Second) }()
	h.stop = func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, swarm.ErrFenced) {
			h.t.Error("Run:", err)
		}
		if err := st.Close(); err != nil {
			h.t.Error(err)
		}
	}
}

// bindings are the modules of the agents, with what they are granted.
func (h *host) bindings() map[Agent]Binding {
	bindings := map[Agent]Binding{}
	for name, m := range h.modules {
		bindings[Agent{Tenant: swarm.DefaultTenant, Swarm: "hive", Name: name}] = Binding{Module: m, Allow: h.allow, Fetcher: h.web, Models: h.models, Actions: h.actions, ArgsChecks: h.forms}
	}
	return bindings
}

func (h *host) post() swarm.Post {
	return swarm.Post{
		Principal: swarm.Principal{Tenant: swarm.DefaultTenant, Role: mail.RoleUser, ID: "alice"},
		Swarm:     "hive", Door: "test", Key: "k", Task: "t", Type: mail.Request, Subject: "q", Body: "go",
	}
}

func (h *host) key() swarm.TaskKey {
	return swarm.TaskKey{InstanceKey: h.post().Principal.Instance("hive"), Task: "t"}
}

// ask posts, or joins the first post, and waits for the answer.
func (h *host) ask() (swarm.Answer, error) {
	return h.send(h.post())
}

// send posts and waits for the answer.
func (h *host) send(p swarm.Post) (swarm.Answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	r, err := h.rt.Submit(ctx, p)
	if err != nil {
		return swarm.Answer{}, err
	}
	a, err := h.rt.Wait(ctx, r)
	if ctx.Err() != nil {
		snap, unread := h.rt.Task(context.Background(), h.key())
		err = fmt.Errorf("no answer to the post: the task is %s, its rows are %+v (%v)", snap.Task.State, snap.Rows, unread)
	}
	return a, err
}

// story is all that is left of the task, without what differs between any two.
func (h *host) story() []string {
	h.t.Helper()
	var lines []string
	for _, agent := range []string{"boss", "math"} {
		entries, err := h.rt.History(context.Background(), h.key(), agent, 0, 1000)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, e := range entries {
			e.Time = ""
			raw, _ := json.Marshal(e)
			lines = append(lines, agent+" "+blur(string(raw)))
		}
	}
	for _, e := range h.events() {
		lines = append(lines, e.Name)
	}
	return lines
}

func (h *host) events() []swarm.Event {
	h.t.Helper()
	events, err := h.rt.Events(context.Background(), h.key(), 0, 1000)
	if err != nil {
		h.t.Fatal(err)
	}
	return events
}

// storyByCaller is the story with the events of each caller by themselves: turns of two agents run
// beside each other.
func (h *host) storyByCaller() []string {
	h.t.Helper()
	events := h.events()
	lines := h.story()[:len(h.story())-len(events)]
	callers := map[string][]string{}
	for _, e := range events {
		var extra struct{ Caller string }
		_ = json.Unmarshal(e.Extra, &extra) // some have no caller
		callers[extra.Caller] = append(callers[extra.Caller], e.Name)
	}
	for _, caller := range slices.Sorted(maps.Keys(callers)) {
		lines = append(lines, caller+": "+strings.Join(callers[caller], " "))
	}
	return lines
}

var different = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{64}|\d{4}-\d\d-\d\dT[0-9:.+-]+|"body":"[0-9a-f]{3}"|\\"body\\":\\"[0-9a-f]{3}\\"`)

func blur(s string) string { return different.ReplaceAllString(s, "…") }

// The host dies before and after each durable write. A repeated request gets the answer,
// the histories equal a run's without a death, and each effect is sent at most
// twice, with the same key.
func TestDeathAtEveryWrite(t *testing.T) {
	t.Parallel()
	calm := newHost(t)
	calm.start(0, false)
	if a, err := calm.ask(); err != nil || a.State != swarm.StateCompleted {
		t.Fatal(a, err)
	}
	want, writes := calm.storyByCaller(), calm.store.n.Load()
	calm.stop()
	if writes != 13 {
		t.Errorf("%d durable writes, want 13: a post, four turns, two for each of four effects", writes)
	}
	for n := int64(2); n <= writes; n++ {
		for _, behind := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d behind %v", n, behind), func(t *testing.T) {
				t.Parallel()
				dieOnce(t, n, behind, want)
			})
		}
	}
}

func dieOnce(t *testing.T, n int64, behind bool, want []string) {
	h := newHost(t)
	h.start(n, behind)
	_, _ = h.ask()
	h.stop()
	if !h.store.dead.Load() {
		t.Fatal("the host did not die")
	}
	h.start(0, false)
	defer h.stop()
	a, err := h.ask()
	if err != nil || a.State != swarm.StateCompleted || !strings.Contains(a.Body, "answer to three") || !strings.Contains(a.Body, "answer to four") {
		t.Fatal(a, err)
	}
	if diff := cmp.Diff(want, h.storyByCaller()); diff != "" {
		t.Errorf("another story (-calm +died):\n%s", diff)
	}
	again := 0
	for key, sent := range h.world.sent {
		if sent > 2 {
			t.Errorf("the effect %s was made %d times", key, sent)
		}
		again += sent - 1
	}
	if len(h.world.sent) != 4 || again > 1 {
		t.Errorf("%d effects, %d of them twice", len(h.world.sent), again)
	}
	h.checkRecords(t)
}

// checkRecords wants every turn's record whole.
func (h *host) checkRecords(t *testing.T) {
	t.Helper()
	list, err := h.store.Records(context.Background(), h.key(), 0, 100)
	if err != nil || len(list) < 3 {
		t.Fatal(len(list), err)
	}
	for _, r := range list {
		rec, err := h.store.Record(context.Background(), h.key(), r.N)
		if err != nil || rec.End == nil || rec.End.Exit != exitOK || len(rec.Header.Input) == 0 || rec.Header.Module != "m1" {
			t.Fatalf("record of turn %d: %+v, %v", r.N, rec.End, err)
		}
		for i, e := range rec.Entries {
			if e.N != int64(i+1) {
				t.Errorf("turn %d: entry %d has the number %d", r.N, i+1, e.N)
			}
		}
	}
}

// storedModules finds modules by digest.
type storedModules map[string]Module

func (s storedModules) Module(_ context.Context, digest string) (Module, error) {
	if m, ok := s[digest]; ok {
		return m, nil
	}
	return nil, &ModuleGoneError{errors.New("it is not in the module store")}
}

// A turn is run again on the module it began on, whatever its agent has now.
func TestRerunOnItsModule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		find Modules
		want string
	}{
		"kept":            {storedModules{"m1": guest{"m1", mixed}}, "and answer to four"},
		"gone":            {storedModules{}, "failed (module): the turn began on the module m1, which this host cannot run any more: it is not in the module store"},
		"no module store": {nil, "failed (module): the turn began on the module m1, which this host does not have any more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.start(3, false)
			_, _ = h.ask()
			h.stop()
			h.modules["boss"] = guest{"m2", mixed}
			h.find = c.find
			h.start(0, false)
			defer h.stop()
			a, err := h.ask()
			if err != nil || !strings.Contains(a.Body, c.want) {
				t.Errorf("%q, %v; want %q", a.Body, err, c.want)
			}
			rec, err := h.store.Record(context.Background(), h.key(), 1)
			if err != nil || rec.End == nil || rec.Header.Module != "m1" {
				t.Errorf("%+v, %v", rec.End, err)
			}
		})
	}
}

// A turn that deviates from its record fails with the reason, and the record contains it.
func TestRerunDiverges(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.start(3, false)
	_, _ = h.ask()
	h.stop()
	h.modules["boss"] = guest{"m1", func(v *visit) { v.call(abi.OpHTTPFetch, "something else") }}
	h.start(0, false)
	defer h.stop()
	a, err := h.ask()
	if err != nil || a.State != swarm.StateFailed || !strings.Contains(a.Body, "failed (diverged)") || !strings.Contains(a.Body, "call 1 http.fetch") {
		t.Errorf("%+v, %v", a, err)
	}
	rec, err := h.store.Record(context.Background(), h.key(), 1)
	if err != nil || rec.End == nil || rec.End.Exit != "diverged" {
		t.Errorf("%+v, %v", rec.End, err)
	}
	if h.world.count() != 1 {
		t.Errorf("%d effects", h.world.count())
	}
}

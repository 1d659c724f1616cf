package swarm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"skep/abi"
	"skep/host/internal/schema"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// behave is an agent in Go: what one turn of it does.
type behave func(ctx context.Context, t *swarm.Turn) swarm.Outcome

// agents plays turns by agent name. Agents it does not know follow the rules
// of the script agent.
type agents struct {
	mu   sync.Mutex
	by   map[string]behave
	seen []string // "agent<-sender:subject"
}

func (a *agents) Execute(ctx context.Context, t *swarm.Turn) swarm.Outcome {
	if err := t.CPU().Acquire(ctx); err != nil {
		return failed(err)
	}
	defer t.CPU().Release()
	m := incoming(t)
	a.mu.Lock()
	a.seen = append(a.seen, fmt.Sprintf("%s<-%s:%s", t.Agent().Name, m.Payload.Sender.Name, m.Payload.Subject))
	b := a.by[t.Agent().Name]
	a.mu.Unlock()
	if b == nil {
		b = script
	}
	return b(ctx, t)
}

func (a *agents) turns() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.seen...)
}

func failed(err error) swarm.Outcome {
	return swarm.Outcome{Failure: &swarm.Failure{Cause: "test", Message: err.Error()}}
}

func incoming(t *swarm.Turn) mail.Message {
	var in abi.TurnInput
	if err := json.Unmarshal(t.Input(), &in); err != nil {
		panic(err)
	}
	m, err := mail.ParseMessage(in.Message)
	if err != nil {
		panic(err)
	}
	return m
}

// call makes one mail call and returns its text, or the error's.
func call(t *swarm.Turn, tool string, args any) string {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	rsp, fault := t.CallMailTool(abi.MailRequest{Tool: tool, Args: raw})
	if fault != nil {
		return "ERROR " + fault.Error()
	}
	return rsp.Text
}

type obj = map[string]any

// script follows the rules of the bundled script agent, without its probes.
func script(_ context.Context, t *swarm.Turn) swarm.Outcome {
	m := incoming(t)
	p := m.Payload
	var calls [][2]json.RawMessage
	if p.Sender.Type != mail.System && json.Unmarshal([]byte(p.Body), &calls) == nil {
		for _, c := range calls {
			var name string
			_ = json.Unmarshal(c[0], &name)
			t.CallMailTool(abi.MailRequest{Tool: name, Args: c[1]})
		}
		return swarm.Outcome{}
	}
	done := obj{"finish_message": fmt.Sprintf("%s got [%s] %s", t.Agent().Name, p.Subject, p.Body)}
	switch {
	case p.Sender.Type == mail.System:
		if t.Agent().CanComplete {
			call(t, mail.ToolTaskComplete, done)
		}
	case m.Type == mail.Broadcast:
		call(t, mail.ToolAcknowledgeBroadcast, obj{})
	case t.Agent().CanComplete:
		call(t, mail.ToolTaskComplete, done)
	case m.Type == mail.Request || m.Type == mail.Interrupt:
		call(t, mail.ToolSendResponse, obj{"target": p.Sender.Name, "subject": "Re: " + p.Subject, "body": "echo: " + p.Body})
	}
	return swarm.Outcome{}
}

// hive is a swarm of a supervisor and two workers, running.
type hive struct {
	// restarts is odd while the runtime is started again.
	restarts atomic.Int64
	t        *testing.T
	dir      string
	agents   *agents
	def      swarm.Definition
	// also names tenants that have the swarm besides the definition's own.
	also []string
	opt  swarm.Options
	// forward is Closed by default.
	forward swarm.Forwarder
	// wrap, if set, stands between the runtime and the store.
	wrap func(swarm.Store) swarm.Store

	mu    sync.Mutex // store and rt at a restart
	store *sqlite.Store
	rt    *swarm.Runtime
	stop  func()
}

func newHive(t *testing.T, change ...func(*hive)) *hive {
	t.Helper()
	h := &hive{t: t, dir: t.TempDir(), agents: &agents{by: map[string]behave{}}}
	h.def = swarm.Definition{
		Tenant: swarm.DefaultTenant, Name: "hive", Entrypoint: "boss",
		Agents: []swarm.Agent{
			{Name: "boss", Targets: []string{"math", "text"}, Entrypoint: true, CanComplete: true},
			{Name: "math", Targets: []string{"boss", "text@hive"}},
			{Name: "text", Targets: []string{"boss"}},
		},
		Limits: swarm.Limits{TaskMessages: 20, TaskTimeout: time.Hour, Queue: 100},
	}
	h.opt.Tokens = 8 // agents here wait for each other with theirs, on one processor, too
	for _, c := range change {
		c(h)
	}
	h.start()
	t.Cleanup(func() { h.stop() })
	return h
}

func (h *hive) start() {
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
	defs := []swarm.Definition{h.def}
	for _, tenant := range h.also {
		def := h.def
		def.Tenant = tenant
		defs = append(defs, def)
	}
	var store swarm.Store = st
	if h.wrap != nil {
		store = h.wrap(st)
	}
	if h.forward == nil {
		h.forward = swarm.NoForwarder{}
	}
	rt, err := swarm.New(ctx, store, h.agents, h.forward, book{set}, defs, h.opt)
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx, 100*time.Millisecond) }()
	h.mu.Lock()
	h.store, h.rt = st, rt
	h.mu.Unlock()
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Error("Run:", err)
		}
		if err := st.Close(); err != nil {
			h.t.Error("Close:", err)
		}
	})
}

// runtime returns the runtime of now, for those that outlive a restart.
func (h *hive) runtime() *swarm.Runtime {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rt
}

// restart ends the runtime and starts another on the same data.
func (h *hive) restart() {
	h.t.Helper()
	h.restarts.Add(1)
	defer h.restarts.Add(1)
	h.stop()
	h.start()
}

type book struct{ set *schema.Set }

func (b book) Tools() (tools []abi.Tool) {
	for _, t := range b.set.Tools() {
		tools = append(tools, abi.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	return tools
}

func (b book) ToolArgs(tool string, args []byte) error { return b.set.ToolArgs(tool, args) }

func alice() swarm.Principal {
	return swarm.Principal{Tenant: swarm.DefaultTenant, Role: mail.RoleUser, ID: "alice"}
}

func (h *hive) post(body string, change ...func(*swarm.Post)) (*swarm.Receipt, error) {
	p := swarm.Post{
		Principal: alice(), Swarm: "hive", Door: "test", Type: mail.Request, Subject: "q", Body: body, Digest: []byte(body),
	}
	for _, c := range change {
		c(&p)
	}
	return h.rt.Submit(context.Background(), p)
}

func (h *hive) mustPost(body string, change ...func(*swarm.Post)) *swarm.Receipt {
	h.t.Helper()
	r, err := h.post(body, change...)
	if err != nil {
		h.t.Fatal("Submit:", err)
	}
	return r
}

func (h *hive) answer(r *swarm.Receipt) swarm.Answer {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	a, err := h.rt.Wait(ctx, r)
	if err != nil {
		h.t.Fatalf("no answer to the post: %v; %s", err, h.outline(r.Task))
	}
	return a
}

// outline is what a task waits for.
func (h *hive) outline(key swarm.TaskKey) string {
	snap, err := h.store.Load(context.Background(), key)
	if err != nil {
		return fmt.Sprintf("its task cannot be read: %v", err)
	}
	text := fmt.Sprintf("its task %q is %s until %v", key.Task, snap.Task.State, snap.Task.Deadline)
	for _, row := range snap.Rows {
		p := row.Message.Payload
		text += fmt.Sprintf(", has a row of %s from %s [%s]", row.Agent, p.Sender.Name, p.Subject)
	}
	for _, r := range snap.Task.Requests {
		text += fmt.Sprintf(", waits for the answer of %s to %s", r.To, r.From)
	}
	for _, msg := range snap.Outbox {
		text += fmt.Sprintf(", has a message to %s [%s]", msg.Peer, msg.Message.Payload.Subject)
	}
	return text + fmt.Sprintf("; the turns were %q", h.agents.turns())
}

// ask posts and waits.
func (h *hive) ask(body string, change ...func(*swarm.Post)) swarm.Answer {
	h.t.Helper()
	return h.answer(h.mustPost(body, change...))
}

func key(task string) swarm.TaskKey {
	return swarm.TaskKey{InstanceKey: alice().Instance("hive"), Task: task}
}

func task(id string) func(*swarm.Post) { return func(p *swarm.Post) { p.Task = id } }

// events reads the whole log of a task, which must have ended.
func (h *hive) events(task string) []swarm.Event {
	h.t.Helper()
	return h.eventsOf(key(task))
}

func (h *hive) eventsOf(key swarm.TaskKey) []swarm.Event {
	h.t.Helper()
	feed, err := h.rt.Follow(context.Background(), key, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	defer feed.Close()
	var all []swarm.Event
	for {
		batch, err := feed.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			h.t.Fatal(err)
		}
		all = append(all, batch...)
	}
}

func names(events []swarm.Event) (out []string) {
	for _, e := range events {
		out = append(out, e.Name)
	}
	return out
}

func (h *hive) record(task string) swarm.Snapshot {
	h.t.Helper()
	snap, err := h.store.Load(context.Background(), key(task))
	if err != nil {
		h.t.Fatal(err)
	}
	return snap
}

func (h *hive) history(task, agent string) []abi.HistoryEntry {
	h.t.Helper()
	entries, err := h.rt.History(context.Background(), key(task), agent, 0, 1000)
	if err != nil {
		h.t.Fatal(err)
	}
	return entries
}

// eventually polls a condition that another goroutine brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never came true: ", what)
		}
	}
}

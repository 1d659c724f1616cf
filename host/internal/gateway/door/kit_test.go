package door_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"skep/abi"
	"skep/host/internal/api/auth"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/door"
	"skep/host/internal/schema"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// behave is what one turn of an agent does.
type behave func(ctx context.Context, t *swarm.Turn) swarm.Outcome

// agents runs turns by the names of agents.
type agents struct {
	mu    sync.Mutex
	by    map[string]behave
	turns int
}

func (a *agents) Execute(ctx context.Context, t *swarm.Turn) swarm.Outcome {
	if err := t.CPU().Acquire(ctx); err != nil {
		return swarm.Outcome{Failure: &swarm.Failure{Cause: "test", Message: err.Error()}}
	}
	defer t.CPU().Release()
	a.mu.Lock()
	a.turns++
	b := a.by[t.Agent().Name]
	a.mu.Unlock()
	return b(ctx, t)
}

func (a *agents) set(name string, b behave) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.by[name] = b
}

func (a *agents) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.turns
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

func call(t *swarm.Turn, tool string, args map[string]any) {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	if _, fault := t.CallMailTool(abi.MailRequest{Tool: tool, Args: raw}); fault != nil {
		panic(fault)
	}
}

// respond answers the message of the turn: by a response, or by completing the task.
func respond(t *swarm.Turn, body string) swarm.Outcome {
	if m := incoming(t); m.Payload.Sender.Type == mail.Agent {
		call(t, mail.ToolSendResponse, map[string]any{"target": m.Payload.Sender.Name, "subject": "re", "body": body})
	} else {
		call(t, mail.ToolTaskComplete, map[string]any{"finish_message": body})
	}
	return swarm.Outcome{}
}

func echo(_ context.Context, t *swarm.Turn) swarm.Outcome {
	return respond(t, "echo: "+incoming(t).Payload.Body)
}

// outboxes are the outboxes with messages, as the runtime reports them.
type outboxes chan swarm.OutboxKey

func (outboxes) Check(context.Context, swarm.InstanceKey, string) error { return nil }

func (o outboxes) Wake(box swarm.OutboxKey) {
	select {
	case o <- box:
	default:
	}
}

// loads is a store that counts the reads of tasks.
type loads struct {
	*sqlite.Store
	n atomic.Int64
}

func (l *loads) Load(ctx context.Context, key swarm.TaskKey) (swarm.Snapshot, error) {
	l.n.Add(1)
	return l.Store.Load(ctx, key)
}

func (l *loads) LoadQueue(ctx context.Context, key swarm.TaskKey) (swarm.Snapshot, error) {
	l.n.Add(1)
	return l.Store.LoadQueue(ctx, key)
}

// kit is a runtime of one swarm, and the door of a gateway to it.
type kit struct {
	*door.Door
	store  *loads
	agents *agents
	swarm  *swarm.Runtime
	out    outboxes
	hive   swarm.Definition
}

type mailTools struct{ set *schema.Set }

func (b mailTools) Tools() (tools []abi.Tool) {
	for _, t := range b.set.Tools() {
		tools = append(tools, abi.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	return tools
}

func (b mailTools) ToolArgs(tool string, args []byte) error { return b.set.ToolArgs(tool, args) }

// newKit starts two equal swarms, hive and nest. Of hive boss and calc are exposed, hidden
// is not.
func newKit(t *testing.T, change ...func(*door.Options)) *kit {
	t.Helper()
	store, err := sqlite.Open(context.Background(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	def := swarm.Definition{
		Tenant: swarm.DefaultTenant, Name: "hive", Entrypoint: "boss",
		Agents: []swarm.Agent{
			{Name: "boss", Targets: []string{"calc", "hidden", "*@acme"}, Entrypoint: true, CanComplete: true, Interswarm: true, Expose: []string{"toy"}},
			{Name: "calc", Targets: []string{"*@acme", "*@shop"}, Interswarm: true, Expose: []string{"toy"}},
			{Name: "hidden", Targets: []string{"boss", "*@acme"}, Interswarm: true},
		},
		Interswarm: true,
		Limits:     swarm.Limits{TaskMessages: 20, TaskTimeout: time.Hour, Queue: 1000},
	}
	nest := def
	nest.Name = "nest"
	k := &kit{store: &loads{Store: store}, agents: &agents{by: map[string]behave{"boss": echo, "calc": echo, "hidden": echo}}, out: make(outboxes, 10), hive: def}
	k.swarm, err = swarm.New(context.Background(), k.store, k.agents, k.out, mailTools{set}, []swarm.Definition{def, nest}, swarm.Options{Tokens: 8})
	if err != nil {
		t.Fatal(err)
	}
	opt := door.Options{
		Partner: func(string) (gateway.Partner, bool) { return gateway.Partner{}, false },
		Renew:   func(c gateway.Caller) (gateway.Caller, error) { return c, nil },
		Gateway: "toy", Swarm: k.swarm,
		ExposedAgents: func(c gateway.Caller) []gateway.ExposedAgent {
			if c.Principal.Tenant != swarm.DefaultTenant {
				return nil
			}
			return []gateway.ExposedAgent{{Swarm: "hive", Name: "boss", Entrypoint: true}, {Swarm: "hive", Name: "calc"}}
		},
	}
	for _, c := range change {
		c(&opt)
	}
	k.Door = door.New(opt)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- k.swarm.Run(ctx, 100*time.Millisecond) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error("Run:", err)
		}
		if err := store.Close(); err != nil {
			t.Error("Close:", err)
		}
	})
	return k
}

func acme() gateway.Caller {
	return gateway.Caller{
		Principal: auth.Principal{Tenant: swarm.DefaultTenant, Role: auth.Agent, ID: "acme"}, Realm: "acme",
		May: gateway.Rights{gateway.MayAsk},
	}
}

func alice() gateway.Caller {
	return gateway.Caller{Principal: auth.Principal{Tenant: swarm.DefaultTenant, Role: auth.User, ID: "alice"}}
}

// ask is an ask with an id, for an agent.
func ask(id, to, body string, change ...func(*gateway.Ask)) gateway.Ask {
	a := gateway.Ask{Kind: gateway.Asks, ID: id, Digest: sha256.Sum256([]byte(to + body)), From: "x", Swarm: "hive", To: []string{to}, Body: body}
	for _, c := range change {
		c(&a)
	}
	return a
}

func in(conversation string) func(*gateway.Ask) {
	return func(a *gateway.Ask) { a.Conversation = conversation }
}

func (k *kit) mustAsk(t *testing.T, c gateway.Caller, a gateway.Ask) gateway.Exchange {
	t.Helper()
	x, err := k.Ask(t.Context(), c, a)
	if err != nil {
		t.Fatalf("Ask %s: %v", a.ID, err)
	}
	return x
}

func (k *kit) wait(t *testing.T, x gateway.Exchange) gateway.Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, err := k.Wait(ctx, x)
	if err != nil {
		snap, unread := k.swarm.Task(context.Background(), x.Task)
		t.Fatalf("no answer to %s: %v; its task is %s with the rows %+v and the requests %+v (%v)", x.ID, err, snap.Task.State, snap.Rows, snap.Task.Requests, unread)
	}
	return a
}

// wantAnswer checks outcome and text.
func wantAnswer(t *testing.T, a gateway.Answer, outcome gateway.Outcome, body string) {
	t.Helper()
	if a.Outcome != outcome || a.Body != body || a.At.IsZero() {
		t.Errorf("answer %s %q at %s, want %s %q", a.Outcome, a.Body, a.At, outcome, body)
	}
}

package swarm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
)

// A turn's input is put together from parts. It has every member that the ABI
// gives it, in the ABI's order, and no other.
func TestInputIsTheABIs(t *testing.T) {
	t.Parallel()
	h := newHive(t, func(h *hive) {
		h.def.Agents[0].Params = json.RawMessage(`{"unit":"<K>"}`)
		h.def.Agents[0].Limits = swarm.TurnLimits{Fuel: 1 << 63, HostCalls: 7, Output: 9}
	})
	var inputs [][]byte
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		inputs = append(inputs, turn.Input())
		out := script(ctx, turn)
		out.Result.State = json.RawMessage(`{"n":1}`)
		return out
	}
	body := "a <b> & \"c\" \\ \n\t\x01 é " + strings.Repeat("long ", 1000)
	for range 2 {
		h.ask(body, task("t"), func(p *swarm.Post) { p.Trace = swarm.ParseTrace(someTrace, "rojo=1") })
	}
	for _, raw := range inputs {
		var in abi.TurnInput
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&in); err != nil {
			t.Fatalf("%v in %s", err, raw)
		}
		again, err := json.Marshal(in)
		if err != nil || !bytes.Equal(again, escaped(raw)) {
			t.Errorf("the input is\n%s\nand not\n%s", raw, again)
		}
	}
	var last abi.TurnInput
	if err := json.Unmarshal(inputs[1], &last); err != nil {
		t.Fatal(err)
	}
	if len(last.Tools) < 5 || string(last.State) != `{"n":1}` || last.Trace != someTrace || len(last.History.Tail) == 0 ||
		last.Budget.Fuel != 1<<63 || !bytes.Contains(inputs[1], []byte(`"long `)) && !bytes.Contains(inputs[1], []byte(`a <b> & \"c\"`)) {
		t.Errorf("the input is %s", inputs[1])
	}
}

// escaped spells a JSON text as encoding/json does by default.
func escaped(raw []byte) []byte {
	var b bytes.Buffer
	json.HTMLEscape(&b, raw)
	return b.Bytes()
}

// An agent whose tools cannot be encoded is refused at the start.
func TestToolsThatAreNoJSON(t *testing.T) {
	t.Parallel()
	store, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	def := swarm.Definition{
		Tenant: swarm.DefaultTenant, Name: "hive", Entrypoint: "boss",
		Agents: []swarm.Agent{{Name: "boss", Entrypoint: true, CanComplete: true, Actions: []string{"ask"}}},
		Human:  []abi.Tool{{Name: "ask", Parameters: json.RawMessage("{")}},
	}
	_, err = swarm.New(t.Context(), store, &agents{}, swarm.NoForwarder{}, noTools{}, []swarm.Definition{def}, swarm.Options{})
	if err == nil || !strings.Contains(err.Error(), `tools of agent "boss"`) {
		t.Errorf("New: %v", err)
	}
}

type noTools struct{}

func (noTools) Tools() []abi.Tool             { return nil }
func (noTools) ToolArgs(string, []byte) error { return nil }

// loads counts what is read of tasks.
type loads struct {
	swarm.Store
	keys []swarm.TaskKey
}

func (l *loads) Load(ctx context.Context, key swarm.TaskKey) (swarm.Snapshot, error) {
	l.keys = append(l.keys, key)
	return l.Store.Load(ctx, key)
}

// A task whose id the runtime has just made is not looked for in the store; one
// that a client names is.
func TestNewTasksAreNotLookedFor(t *testing.T) {
	t.Parallel()
	var seen *loads
	h := newHive(t, func(h *hive) {
		h.wrap = func(s swarm.Store) swarm.Store { seen = &loads{Store: s}; return seen }
	})
	if a := h.ask("x"); a.State != swarm.StateCompleted || len(seen.keys) != 0 {
		t.Errorf("%+v, after %v was loaded", a, seen.keys)
	}
	if a := h.ask("x", task("t")); a.State != swarm.StateCompleted || len(seen.keys) != 1 || seen.keys[0] != key("t") {
		t.Errorf("%+v, after %v was loaded", a, seen.keys)
	}
}

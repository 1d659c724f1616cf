package capability

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
	"skep/spec/mail"
)

// oneAgent is a host whose entrypoint does one thing.
func oneAgent(t *testing.T, turn func(v *visit)) *host {
	h := newHost(t)
	h.modules["boss"] = guest{"m1", turn}
	h.allow = Allow{KV: swarm.KVInstance, RetryInDoubt: true}
	return h
}

// tell ends a turn with an answer to the user.
func (v *visit) tell(lines []string) {
	v.mail(mail.ToolTaskComplete, obj{"finish_message": strings.Join(lines, "\n")})
}

func (h *host) told(t *testing.T) []string {
	t.Helper()
	a, err := h.ask()
	if err != nil || a.State != swarm.StateCompleted {
		t.Fatal(a, err)
	}
	return strings.Split(a.Body, "\n")
}

// What each op of values answers, in the JSON of the ABI.
func TestKVOps(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", swarm.MaxKVValue+1)
	calls := []struct {
		op        abi.Op
		req, want string
	}{
		{abi.OpKVGet, `{"key":"a"}`, `NOT_FOUND: there is no key "a" in the scope agent`},
		{abi.OpKVPut, `{"key":"a","value":"<é>"}`, `{}`},
		{abi.OpKVGet, `{"key":"a"}`, `{"value":"\u003cé\u003e"}`},
		{abi.OpKVGet, `{"key":"a","scope":"task"}`, `NOT_FOUND: there is no key "a" in the scope task`},
		{abi.OpKVPut, `{"key":"b","value":"","scope":"instance"}`, `{}`},
		{abi.OpKVGet, `{"key":"b","scope":"instance"}`, `{"value":""}`},
		{abi.OpKVPut, `{"key":"a"}`, `INVALID: value is missing; it must be a text`},
		{abi.OpKVPut, `{"key":"a","value":7}`, `INVALID: kv.put: value must be a text, not the number 7`},
		{abi.OpKVPut, `{"key":"a","value":"` + long + `"}`, `LIMIT: a value of 65537 bytes, at most 65536`},
		{abi.OpKVDelete, `{"key":""}`, `INVALID: the key must not be empty`},
		{abi.OpKVDelete, `{"key":"none"}`, `{}`},
		{abi.OpKVPut, `{"key":"ab","value":"x"}`, `{}`},
		{abi.OpKVList, `{}`, `{"keys":["a","ab"]}`},
		{abi.OpKVList, `{"Prefix":""}`, `INVALID: kv.list: Prefix must be written prefix`},
		{abi.OpKVList, `{"prefix":"a","limit":1}`, `{"keys":["a"],"next":"a"}`},
		{abi.OpKVList, `{"prefix":"a","after":"a"}`, `{"keys":["ab"]}`},
		{abi.OpKVList, `{"prefix":"c"}`, `{"keys":[]}`},
		{abi.OpKVDelete, `{"key":"ab"}`, `{}`},
		{abi.OpKVList, `{"limit":5000}`, `{"keys":["a"]}`},
		{abi.OpKVCas, `{"key":"a","expect":null,"value":"1"}`, `CONFLICT: the turn has already put or deleted the key "a"`},
		{abi.OpKVCas, `{"key":"n","expect":"0","value":"1"}`, `{"ok":false}`},
		{abi.OpKVCas, `{"key":"n","expect":null,"value":"1"}`, `{"ok":true}`},
		{abi.OpKVCas, `{"key":"n","value":"2"}`, `{"ok":false}`},
		{abi.OpKVCas, `{"key":"n","expect":"1","value":""}`, `{"ok":true}`},
		{abi.OpKVGet, `{"key":"n"}`, `{"value":""}`},
		{abi.OpKVCas, `{"key":"n","expect":"","value":null}`, `{"ok":true}`},
		{abi.OpKVCas, `{"key":"n","expect":null,"value":"` + long + `"}`, `LIMIT: a value of 65537 bytes, at most 65536`},
		{abi.OpTimerSet, `{"after":"soon","body":"x"}`, `INVALID: timer.set: after must be a time as in "90s" or a number of milliseconds, not a text`},
		{abi.OpTimerSet, `{"after":0.5,"body":"x"}`, `INVALID: after is 500µs; it must be from 1 ms to 30 days`},
		{abi.OpTimerSet, `{"after":1e300,"body":"x"}`, `INVALID: timer.set: after must be a time as in "90s" or a number of milliseconds, not the number 1e300`},
		{abi.OpTimerSet, `{"body":"x"}`, `INVALID: after is 0s; it must be from 1 ms to 30 days`},
		{abi.OpTimerCancel, `{"id":"none"}`, `NOT_FOUND: agent "boss" has no timer "none" pending in this task`},
		{abi.OpTimerCancel, `{"timer":"none"}`, `INVALID: timer.cancel: timer is no member; the members are id`},
	}
	h := oneAgent(t, func(v *visit) {
		var lines []string
		for _, c := range calls {
			lines = append(lines, v.call(c.op, c.req))
		}
		v.tell(lines)
	})
	h.start(0, false)
	defer h.stop()
	for i, got := range h.told(t) {
		if got != calls[i].want {
			t.Errorf("%s %.60s: %s\nwant %s", calls[i].op, calls[i].req, got, calls[i].want)
		}
	}
}

// Every kv op needs the grant of its scope, and its refusal names the line that grants it.
func TestKVGrants(t *testing.T) {
	t.Parallel()
	for granted, allowed := range map[swarm.KVKind]int{"": 0, swarm.KVTask: 1, swarm.KVAgent: 2, swarm.KVInstance: 3} {
		h := oneAgent(t, func(v *visit) {
			var lines []string
			for _, scope := range kvKinds() {
				for _, op := range []abi.Op{abi.OpKVPut, abi.OpKVGet, abi.OpKVDelete, abi.OpKVCas, abi.OpKVList} {
					req := fmt.Sprintf(`{"key":"a","scope":%q}`, scope)
					switch op {
					case abi.OpKVPut:
						req = fmt.Sprintf(`{"key":"a","scope":%q,"value":"x"}`, scope)
					case abi.OpKVList:
						req = fmt.Sprintf(`{"scope":%q}`, scope)
					}
					lines = append(lines, v.call(op, req))
				}
			}
			v.tell(lines)
		})
		h.allow.KV = granted
		h.start(0, false)
		for i, got := range h.told(t) {
			scope := kvKinds()[i/5]
			want := fmt.Sprintf(`DENIED: the scope %s is not granted to agent "boss"; it takes allow = { kv = %q } in [agents.boss]`, scope, scope)
			if denied := got == want; denied != (i/5 >= allowed) {
				t.Errorf("granted %q, call %d: %s", granted, i, got)
			}
		}
		h.stop()
	}
}

// A cas stays when its turn is discarded, what is staged does not.
func TestCasSurvivesADiscardedTurn(t *testing.T) {
	t.Parallel()
	h := oneAgent(t, nil)
	h.modules["boss"] = trapping{guest{"m1", func(v *visit) {
		v.call(abi.OpKVCas, `{"key":"cas","expect":null,"value":"stays"}`)
		v.call(abi.OpKVPut, `{"key":"put","value":"goes"}`)
		v.call(abi.OpTimerSet, `{"after":"1h","body":"goes"}`)
	}}}
	h.start(0, false)
	defer h.stop()
	if a, err := h.ask(); err != nil || a.Subject != mail.SubjectAgentError {
		t.Fatal(a, err)
	}
	scope := swarm.KVScope{Kind: swarm.KVAgent, Agent: "boss"}
	names, err := h.store.KVList(context.Background(), h.key(), scope, "", "", 10)
	if err != nil || !slices.Equal(names, []string{"cas"}) {
		t.Errorf("left behind: %q, %v", names, err)
	}
	if snap, err := h.rt.Task(context.Background(), h.key()); err != nil || len(snap.Rows) != 0 {
		t.Errorf("rows %+v, %v", snap.Rows, err)
	}
}

// trapping is a guest whose turns trap at their end.
type trapping struct{ guest }

func (f trapping) Turn(ctx context.Context, t turn.Turn) turn.Result {
	res := f.guest.Turn(ctx, t)
	res.Exit = &turn.Exit{Kind: turn.ExitTrap, Message: "on purpose"}
	return res
}

// stateful mixes values and timers with effects, and ends on its timer.
func stateful(v *visit) {
	m, err := mail.ParseMessage(v.in.Message)
	if err != nil {
		panic(err)
	}
	if m.Payload.Sender.Type == mail.System {
		v.tell([]string{v.call(abi.OpKVList, `{}`), v.call(abi.OpKVGet, `{"key":"got"}`), m.Payload.Body})
		return
	}
	v.call(abi.OpKVPut, `{"key":"before","value":"1"}`)
	v.call(abi.OpTimerSet, `{"after":"1h","body":"never"}`)
	v.call(abi.OpKVPut, `{"key":"none"}`)
	one := v.call(abi.OpHTTPFetch, "one")
	v.call(abi.OpKVPut, fmt.Sprintf(`{"key":"got","value":%q}`, one+v.call(abi.OpKVGet, `{"key":"before"}`)))
	v.call(abi.OpKVDelete, `{"key":"before"}`)
	v.call(abi.OpKVCas, `{"key":"cas","expect":null,"value":"once"}`)
	v.call(abi.OpTimerSet, `{"after":1,"body":"end"}`)
	v.call(abi.OpHTTPFetch, "two")
	v.call(abi.OpKVPut, fmt.Sprintf(`{"key":"late","value":%q}`, v.call(abi.OpKVList, `{}`)))
	v.mail(mail.ToolAwaitMessage, obj{})
}

// The host dies at each durable write of a turn that keeps values and sets
// timers. What is there in the end is what a host that lived has left.
func TestDeathWithValuesAndTimers(t *testing.T) {
	t.Parallel()
	live := func(dies int64, behind bool) (*host, []string) {
		h := oneAgent(t, stateful)
		if dies > 0 {
			h.start(dies, behind)
			_, _ = h.ask()
			h.stop()
		}
		h.start(0, false)
		return h, strings.Split(blur(strings.Join(h.told(t), "\n")), "\n")
	}
	calm, want := live(0, false)
	story, writes := calm.story(), calm.store.n.Load()
	calm.stop()
	if want[0] != `{"keys":["cas","got","late"]}` || want[2] != "end" || !strings.Contains(want[1], "answer to one") {
		t.Fatalf("%q", want)
	}
	if writes != 8 {
		t.Errorf("%d durable writes, want 8: a post, two turns, two for each of two effects, a cas", writes)
	}
	for n := int64(2); n <= writes; n++ {
		for _, behind := range []bool{false, true} {
			h, got := live(n, behind)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("write %d behind %v:\n%s", n, behind, diff)
			}
			if diff := cmp.Diff(story, h.story()); diff != "" {
				t.Errorf("write %d behind %v:\n%s", n, behind, diff)
			}
			snap, err := h.rt.Task(context.Background(), h.key())
			if err != nil || len(snap.Rows) != 1 || snap.Rows[0].Message.Payload.Body != "never" {
				t.Errorf("write %d behind %v: rows %+v, %v", n, behind, snap.Rows, err)
			}
			h.stop()
		}
	}
}

// unreadable is a store whose values cannot be read.
type unreadable struct{ swarm.Store }

var errDisk = errors.New("disk")

func (unreadable) KVGet(context.Context, swarm.TaskKey, swarm.KVScope, string) ([]byte, error) {
	return nil, errDisk
}

func (unreadable) KVList(context.Context, swarm.TaskKey, swarm.KVScope, string, string, int) ([]string, error) {
	return nil, errDisk
}

func TestKVUnreadable(t *testing.T) {
	t.Parallel()
	h := oneAgent(t, func(v *visit) {
		v.tell([]string{v.call(abi.OpKVGet, `{"key":"a"}`), v.call(abi.OpKVPut, `{"key":"a","value":"x"}`), v.call(abi.OpKVList, `{}`)})
	})
	h.wrap = func(s swarm.Store) swarm.Store { return unreadable{s} }
	h.start(0, false)
	defer h.stop()
	for i, got := range h.told(t) {
		if got != "INTERNAL: the store cannot be read" {
			t.Errorf("call %d: %s", i, got)
		}
	}
}

// Values staged before a breakpoint are invisible to others until the answer comes and the
// turn commits, and are then applied once.
func TestStagedOverASuspension(t *testing.T) {
	t.Parallel()
	h := newShop(t, func(v *visit) {
		v.call(abi.OpKVPut, `{"key":"a","value":"staged"}`)
		v.call(abi.OpTimerSet, `{"after":"1h","body":"later"}`)
		v.call(abi.OpAction, `{"name":"confirm","args":{}}`)
		v.tell([]string{v.call(abi.OpKVGet, `{"key":"a"}`)})
	})
	h.allow = Allow{KV: swarm.KVAgent}
	h.start(0, false)
	scope := swarm.KVScope{Kind: swarm.KVAgent, Agent: "boss"}
	if a, err := h.ask(); err != nil || a.State != swarm.StatePaused {
		t.Fatal(a, err)
	}
	if _, err := h.store.KVGet(t.Context(), h.key(), scope, "a"); !errors.Is(err, swarm.ErrNotFound) {
		t.Error("the value is there before the commit: ", err)
	}
	h.allow = Allow{} // what was granted stays done
	h.restart()
	defer h.stop()
	a, err := h.resume(one("yes"))
	if err != nil || !strings.HasPrefix(a.Body, "DENIED: the scope agent is not granted") {
		t.Errorf("%+v, %v", a, err)
	}
	if value, err := h.store.KVGet(t.Context(), h.key(), scope, "a"); string(value) != "staged" {
		t.Errorf("%q, %v", value, err)
	}
	if snap, err := h.rt.Task(t.Context(), h.key()); err != nil || len(snap.Rows) != 1 || snap.Rows[0].NotBefore.IsZero() {
		t.Errorf("rows %+v, %v", snap.Rows, err)
	}
}

package capability

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
)

// fleeting is a module whose actions need not do again what they did.
type fleeting struct{ actor }

func (fleeting) Repeats() bool { return false }

// newNonRepeating makes an action of the boss that runs in such a module, and may keep
// values.
func (h *host) newNonRepeating(name string, d deed) *Action {
	a, runs := h.newAction(name, d)
	a.Module = fleeting{actor{guest{digest: "f1"}, d, runs}}
	a.Allow.KV, h.allow.KV = swarm.KVInstance, swarm.KVInstance
	return a
}

// dying plays a turn on a host that dies at a durable write, and then on the next.
func (h *host) dying(dies int64, behind bool, turn func(*visit)) (swarm.Answer, error) {
	h.modules["boss"] = guest{"m1", turn}
	h.start(dies, behind)
	got, err := h.ask()
	if err != nil {
		h.restart()
		got, err = h.ask()
	}
	return got, err
}

// Once an action in a process has answered, its answer stands: it is not run again,
// what it has changed is changed again, and what a failed one within it had staged
// is not.
func TestDeathAfterANonRepeatingAction(t *testing.T) {
	t.Parallel()
	for dies := int64(1); dies <= 8; dies++ {
		for _, behind := range []bool{false, true} {
			h := newHost(t)
			failing := h.newNonRepeating("failing", func(v *visit, _ string) (string, *turn.Exit) {
				v.call(abi.OpKVPut, `{"scope":"instance","key":"lost","value":"x"}`)
				return "", &turn.Exit{Kind: turn.ExitFailed, Message: "no"}
			})
			runs := 0
			a := h.newNonRepeating("shop", func(v *visit, _ string) (string, *turn.Exit) {
				runs++
				v.call(abi.OpLog, fmt.Sprintf(`{"message":"run %d"}`, runs))
				v.call(abi.OpKVPut, fmt.Sprintf(`{"scope":"instance","key":"k","value":"run %d"}`, runs))
				v.call(abi.OpKVPut, `{"scope":"agent","key":"own","value":"mine"}`)
				v.call(abi.OpEmit, `{"note":"bought"}`)
				v.call(abi.OpAction, `{"name":"failing","args":{}}`)
				return fmt.Sprintf(`"run %d"`, runs), nil
			})
			a.Actions = map[string]*Action{"failing": failing}
			got, err := h.dying(dies, behind, tells(`action {"name":"shop","args":{}}`, `fetch one`,
				`get {"scope":"instance","key":"k"}`, `get {"scope":"instance","key":"lost"}`))
			said, rest, _ := strings.Cut(got.Body, "; answer to one under ")
			told := strings.Trim(said, `"`)
			if err != nil || told != "run 1" && told != "run 2" || !strings.Contains(rest, `; {"value":"`+told+`"}; NOT_FOUND: `) {
				t.Errorf("%d behind %v: %v, %s", dies, behind, err, got.Body)
			}
			if len(h.world.sent) != 1 {
				t.Errorf("%d behind %v: sent %v", dies, behind, h.world.sent)
			}
			if n := strings.Count(strings.Join(h.story(), "\n"), "\nagent_note\n"); n > 1 {
				t.Errorf("%d behind %v: noted %d times", dies, behind, n)
			}
			own, err := h.store.KVGet(context.Background(), h.key(), swarm.KVScope{Kind: swarm.KVAgent, Agent: "action/shop"}, "own")
			if err != nil || string(own) != "mine" {
				t.Errorf("%d behind %v: its own value is %q, %v", dies, behind, own, err)
			}
			h.stop()
		}
	}
}

// An action in a process that a host dies in is run on its record: one that makes
// the same calls goes on, and one that does not ends its turn. Nothing is sent under
// two keys.
func TestDeathInANonRepeatingAction(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, again, want string
	}{
		{"repeats", "one", `"answer to one under `},
		{"differs", "two", "the turn did not repeat itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			first := true
			h.newNonRepeating("shop", func(v *visit, _ string) (string, *turn.Exit) {
				what := c.again
				if first {
					first, what = false, "one"
				}
				return `"` + v.call(abi.OpHTTPFetch, what) + `"`, nil
			})
			// The third write is the answer to the request that the action makes.
			got, err := h.dying(3, false, tells(`action {"name":"shop","args":{}}`))
			defer func() { h.stop() }()
			if err != nil || !strings.Contains(got.Body, c.want) {
				t.Errorf("%v, %s", err, got.Body)
			}
			if len(h.world.sent) != 1 {
				t.Errorf("sent %v", h.world.sent)
			}
		})
	}
}

// An action in a process that asks a person is run again up to the answer: one that
// asks the same goes on, and one that does not ends its turn.
func TestNonRepeatingActionWithABreakpoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		next string // what it asks when it is run again
		want string
	}{
		{"repeats", "one", "yes, do"},
		{"differs", "two", "the turn did not repeat itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newShop(t, tells(`action {"name":"deal","args":{}}`))
			first := true
			a := h.newNonRepeating("deal", func(v *visit, _ string) (string, *turn.Exit) {
				what := c.next
				if first {
					first, what = false, "one"
				}
				v.call(abi.OpHTTPFetch, what)
				return v.call(abi.OpAction, `{"name":"confirm","args":{}}`), nil
			})
			a.Calls = []string{"confirm"}
			h.start(0, false)
			defer func() { h.stop() }()
			if got, err := h.ask(); err != nil || got.State != swarm.StatePaused {
				t.Fatalf("%+v, %v", got, err)
			}
			got, err := h.resume(one("yes, do"))
			if err != nil || !strings.Contains(got.Body, c.want) {
				t.Errorf("%v, %s", err, got.Body)
			}
			if len(h.world.sent) != 1 {
				t.Errorf("sent %v", h.world.sent)
			}
		})
	}
}

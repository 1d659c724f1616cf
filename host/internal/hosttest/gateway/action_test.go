package gateway_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// acting is a swarm whose agent acts on the partner depot, by actions with one partner and
// with two, of which the second is another tenant's.
const acting = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:script.wasm"
enable_entrypoint = true
can_complete_tasks = true
actions = ["send_depot", "tell_any", "status_depot", "card_depot", "ask_depot"]
[actions.send_depot]
source = "gateway:a2a/send"
partners = ["depot"]
[actions.tell_any]
source = "gateway:a2a/tell"
partners = ["depot", "closed"]
[actions.status_depot]
source = "gateway:a2a/status"
partners = ["depot"]
[actions.card_depot]
source = "gateway:a2a/card"
partners = ["depot"]
[actions.ask_depot]
source = "gateway:a2a/ask"
partners = ["depot"]
[tenants.other]
[gateways.a2a.partners.depot]
url = "%[1]s/a2a/depot/boss"
auth_token = "the-token-of-hive-at-depot"
allow_private = true
[gateways.a2a.partners.closed]
url = "%[1]s/a2a/depot/boss"
allow_private = true
tenant = "other"
[[auth.keys]]
id = "alice"
role = "user"
key = "a-key-of-alice-the-user"
`

// sites returns a host depot, and one with the actions that reach it.
func sites(t *testing.T) (depot, hive *hosttest.Site) {
	t.Helper()
	depot = hosttest.NewSite(t, file("depot", `[gateways.a2a.partners.hive]
[[auth.keys]]
id = "hive"
role = "agent"
key = "the-token-of-hive-at-depot"
`))
	return depot, hosttest.NewSite(t, fmt.Sprintf(acting, depot.URL()))
}

// TestActionWritesMail (G-060): an action writes an outbox message: its result is the
// request's id, the answer comes as mail, and comm_targets need not list the partner. The
// turn repeats from its record.
func TestActionWritesMail(t *testing.T) {
	t.Parallel()
	_, hive := sites(t)
	body := hosttest.Script(hosttest.Step{"ask_depot", hosttest.Args{"message": "how many?", "subject": "stock", "agent": "clerk", "metadata": hosttest.Args{"colour": "green"}}}, hosttest.Step{"await_message", hosttest.Args{}})
	got, err := hive.As(hosttest.AliceKey).PostMessage(t.Context(), client.Post{Task: "t", Body: body})
	if err != nil || !strings.Contains(got.Body, "how many?") {
		t.Fatalf("answer %+v, %v", got, err)
	}
	if refused := hive.Do(hosttest.AliceKey, "second", hosttest.Step{"send_request", hosttest.Args{"target": "clerk@depot", "subject": "s", "body": "x"}}); !strings.Contains(refused, "ERROR") {
		t.Errorf("mail without comm_targets: %s", refused)
	}
	if err := hive.Stop(); err != nil {
		t.Error(err)
	}
	hosttest.Replay(t, filepath.Join(hive.Dir, "swarm.toml"), hive.Data)
}

// TestActionsAtPartner (G-060, X-005): an agent asks an agent of another host within its
// turn, continues the conversation, and looks at what it began. What is not granted to the
// action, or to the tenant, is not reached. The turn repeats from its record.
func TestActionsAtPartner(t *testing.T) {
	t.Parallel()
	_, hive := sites(t)
	// What is told is not answered: the text of an early answer would stand for the ids.
	wait := hosttest.Script(hosttest.Step{"await_message", hosttest.Args{}})
	got := hive.Do(hosttest.AliceKey, "t",
		hosttest.Step{"send_depot", hosttest.Args{"message": "how many?"}},
		hosttest.Step{"send_depot", hosttest.Args{"message": "sure?", "partner": "closed"}},
		hosttest.Step{"tell_any", hosttest.Args{"message": "hello", "partner": "closed"}},
		hosttest.Step{"tell_any", hosttest.Args{"message": wait, "partner": "depot"}},
		hosttest.Step{"status_depot", hosttest.Args{"task": "no-such-task"}},
		hosttest.Step{"card_depot", hosttest.Args{}},
	)
	answers := strings.Split(got, " | ")
	var told struct{ Task, Context string }
	if err := json.Unmarshal([]byte(answers[3]), &told); err != nil || told.Task == "" || told.Context == "" {
		t.Fatalf("tell: %s, %v", got, err)
	}
	for i, want := range map[int]string{
		0: "boss got [New Message] how many?", 1: "INVALID", 2: `a2a tell of partner "closed": this tenant has no such partner`, 4: "UPSTREAM", 5: `"name":"boss"`,
	} {
		if !strings.Contains(answers[i], want) {
			t.Errorf("answer %d is %s, want %s", i, answers[i], want)
		}
	}
	again := hive.Do(hosttest.AliceKey, "second", hosttest.Step{"tell_any", hosttest.Args{"message": wait, "partner": "depot", "context": told.Context}})
	if !strings.Contains(again, fmt.Sprintf(`"context":%q`, told.Context)) || strings.Contains(again, told.Task) {
		t.Errorf("the conversation goes on with %s", again)
	}
	if err := hive.Stop(); err != nil {
		t.Error(err)
	}
	hosttest.Replay(t, filepath.Join(hive.Dir, "swarm.toml"), hive.Data)
}

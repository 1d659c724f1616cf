package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/hosttest"
)

// handingOn is a swarm whose agent hands on subtasks to the partner mesh, and tells it events.
const handingOn = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[server]
public_url = "https://hive.example"
[agents.boss]
source = "file:script.wasm"
enable_entrypoint = true
can_complete_tasks = true
actions = ["hand_on", "tell_one", "tell_all"]
[actions.hand_on]
source = "gateway:amp/delegate"
partners = ["mesh"]
[actions.tell_one]
source = "gateway:amp/event"
partners = ["mesh"]
[actions.tell_all]
source = "gateway:amp/event_to_all"
partners = ["mesh"]
[gateways.amp.partners.mesh]
url = "%s/invoke"
ids = ["agent-*"]
may = []
allow_private = true
[[auth.keys]]
id = "mesh"
role = "agent"
key = "the-token-of-mesh-at-hive"
[[auth.keys]]
id = "alice"
role = "user"
key = "a-key-of-alice-the-user"
`

// newTaker starts a partner that takes each message and answers none. came has what it got.
func newTaker(t *testing.T) (url string, came <-chan amptest.Message) {
	t.Helper()
	got := make(chan amptest.Message, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		m, err := amptest.Parse(text)
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusAccepted)
		got <- m
	}))
	t.Cleanup(server.Close)
	return server.URL, got
}

// callbackOf is the callback of a message that delegates.
func callbackOf(m amptest.Message) string {
	var of struct {
		Delegation struct {
			Subtask struct {
				Callback string `json:"completion_callback"`
			} `json:"subtask"`
		} `json:"delegation"`
	}
	payload, _ := json.Marshal(m.Message.Payload)
	_ = json.Unmarshal(payload, &of) // another form has none
	return of.Delegation.Subtask.Callback
}

// TestDelegatesOverAMP (M-034, M-035, M-038, G-060): an agent here hands on a subtask by an action, and
// the answer at the callback reaches its task, once, also after a restart of the host. Events leave
// for one agent and for all. The turn repeats from its record.
func TestDelegatesOverAMP(t *testing.T) {
	t.Parallel()
	url, came := newTaker(t)
	s := hosttest.NewSite(t, fmt.Sprintf(handingOn, url))
	callBack := func(asked amptest.Message, token, text string) amptest.Reply {
		t.Helper()
		path, ours := strings.CutPrefix(callbackOf(asked), "https://hive.example")
		if !ours {
			t.Fatalf("no callback in %s", asked.Text())
		}
		r, err := amptest.Client{URL: s.URL() + path, Token: token}.Send(asked.Reply("response", amptest.Result(amptest.Object{"text": text})))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, restarts := range []bool{false, true} { // after a restart the question is asked again
		task := map[bool]string{false: "t", true: "again"}[restarts]
		post := client.Post{Task: task, Key: "once " + task, Body: hosttest.Script(
			hosttest.Step{"tell_one", hosttest.Args{"agent": "agent-2", "event_type": "begun", "data": hosttest.Args{"n": 1}}},
			hosttest.Step{"tell_all", hosttest.Args{"event_type": "begun"}},
			hosttest.Step{"hand_on", hosttest.Args{"agent": "agent-1", "capability": "data-extraction", "parameters": hosttest.Args{"from": "page"}}},
			hosttest.Step{"await_message", hosttest.Args{}},
		)}
		if _, err := s.As(hosttest.AliceKey).PostAsync(t.Context(), post); err != nil {
			t.Fatal(err)
		}
		var asked amptest.Message
		var events []string
		for asked.Message.ID == "" || len(events) < 2 {
			switch m := <-came; m.Message.Type {
			case "request":
				asked = m
			default:
				payload, _ := json.Marshal(m.Message.Payload)
				events = append(events, m.Message.Destination.AgentID+string(payload))
			}
		}
		if got := strings.Join(events, " "); !strings.Contains(got, `agent-2{"event_type":"begun","n":1}`) || !strings.Contains(" "+got, ` {"event_type":"begun"}`) {
			t.Errorf("events %s", got)
		}
		if restarts {
			s.Restart()
		}
		if r := callBack(asked, "not-its-token", "forged"); r.Status != http.StatusUnauthorized {
			t.Errorf("forged: %d %s", r.Status, r.Text)
		}
		for range 2 {
			if r := callBack(asked, "the-token-of-mesh-at-hive", "dug out"); r.Status != http.StatusAccepted {
				t.Errorf("called back: %d %s", r.Status, r.Text)
			}
		}
		got, err := s.As(hosttest.AliceKey).PostMessage(t.Context(), post)
		if err != nil || strings.Count(got.Body, "dug out") != 1 || strings.Contains(got.Body, "forged") {
			t.Fatalf("the task ends with %+v, %v", got, err)
		}
		if r := callBack(asked, "the-token-of-mesh-at-hive", "too late"); r.Status != http.StatusAccepted {
			t.Errorf("a later one: %d %s", r.Status, r.Text)
		}
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	hosttest.Replay(t, filepath.Join(s.Dir, "swarm.toml"), s.Data)
}

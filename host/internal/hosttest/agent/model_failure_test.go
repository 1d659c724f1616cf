package agent_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// Why a model has failed is seen in the turn, the log, the feed and the usage: the address that refuses or
// the status that came, and nothing that the provider has said or was asked.
func TestModelFailureIsSeen(t *testing.T) {
	t.Parallel()
	const planted = "planted words"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"no: %s"}}`, planted)
	}))
	defer s.Close()
	text := `schema = 1
[swarm]
name = "desk"
entrypoint = "dead"
`
	for agent, url := range map[string]string{"dead": "http://127.0.0.1:1/v1", "shut": s.URL + "/v1"} {
		text += fmt.Sprintf(`[agents.%[1]s]
source = "bundled:llm"
enable_entrypoint = true
can_complete_tasks = true
allow = { llm = [%[1]q] }
params = { model = %[1]q }
[models.%[1]s]
provider = "openai"
base_url = %[2]q
model = "%[1]s-9"
allow_private = true
retries = 0
rest_after = 1
rest = "1h"
`, agent, url)
	}
	h, log := hosttest.StartText(t, text, nil)
	c := h.Client(t)
	last := map[string]string{"dead": "models.dead: rests: connection refused", "shut": "models.shut: status 401, auth"}
	for agent, cause := range map[string]string{"dead": "models.dead: connection refused", "shut": last["shut"]} {
		if _, err := c.PostMessage(t.Context(), client.Post{Task: agent, Body: planted, Subject: planted, Entrypoint: agent}); err != nil {
			t.Log(err) // the answer of a task that failed
		}
		for turn, err := range c.Turns(t.Context(), agent, 0) {
			if err != nil || len(turn.ModelFailures) == 0 || turn.ModelFailures[0].Model != agent+"-9" || turn.ModelFailures[0].Cause != cause {
				t.Errorf("the turn of %s: %v %+v", agent, err, turn.ModelFailures)
			}
			if bytes.Contains(turn.Raw, []byte("planted")) {
				t.Errorf("the turn shows content: %s", turn.Raw)
			}
		}
		var events []string
		for e, err := range c.Pulse(t.Context(), client.PulseQuery{Kept: true, Kinds: []string{"turn"}}) {
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, string(e.Raw))
			if e.Kind == client.PulsePing {
				break
			}
		}
		if all := strings.Join(events, "\n"); !strings.Contains(all, `"model_cause":"`+last[agent]+`"`) || strings.Contains(all, "planted") {
			t.Errorf("the feed: %s", all)
		}
		if !bytes.Contains(log.Bytes(), []byte(last[agent])) || bytes.Contains(log.Bytes(), []byte("planted")) {
			t.Errorf("the log: %s", log.Bytes())
		}
	}
	u, err := c.Usage(t.Context(), client.UsageQuery{By: "model", Scope: "host"})
	failures := map[string]map[string]int64{}
	for _, sum := range u.Sums {
		failures[sum.Model] = sum.Causes
	}
	if err != nil || failures["dead-9"]["unavailable"] != 1 || failures["dead-9"]["resting"] != 1 || failures["shut-9"]["auth"] != 1 {
		t.Errorf("the usage by model: %v %+v", err, failures)
	}
	if n := bytes.Count(log.Bytes(), []byte("a model rests: call after call failed")); n != 1 {
		t.Errorf("%d lines say that a model rests, want 1", n)
	}
	if u.Total.Failures != 2 {
		t.Errorf("in all %d turns have failed, want 2", u.Total.Failures)
	}
}

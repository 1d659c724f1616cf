package gateway_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
	"skep/spec/mail"
)

// everywhereKey is the user's key in examples/everywhere.
const everywhereKey = "a-key-to-try-on-this-machine"

// TestOneTaskOverAllProtocols: a question passes two hosts over UAMP, mail between local
// agents, IaCP, AMP, ACP, MCP and A2A, and its answer comes back the same way. Each agent has
// the trace of the post, in the turn of the question and in that of the answer. Each host's
// log has each message once.
func TestOneTaskOverAllProtocols(t *testing.T) {
	t.Parallel()
	const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	e := hosttest.StartEverywhere(t)
	c := e.Client(everywhereKey, "00-"+traceID+"-00f067aa0ba902b7-01")
	got, err := c.PostMessage(t.Context(), client.Post{Task: "t", Body: "how far?"})
	if want := hosttest.EverywhereAnswer("how far?", traceID); err != nil || got.Body != want {
		t.Fatalf("%v, the answer is\n%s\nwant\n%s", err, got.Body, want)
	}
	if err := hosttest.Follow(t.Context(), c, "t"); err != nil {
		t.Error(err)
	}
	if n := countResponses(t, c, "t", "desk"); n != 1 {
		t.Errorf("the answer came %d times", n)
	}
	wantQuestions(t, e.Hive, "a2a in SendMessage", "acp in REQUEST", "amp out request", "iacp in task_request", "uamp out ask")
	wantQuestions(t, e.Depot, "a2a out request", "acp out REQUEST", "amp in request", "iacp out task_request", "mcp in tools/call", "uamp in ask")
}

// countResponses counts the responses that an agent got in a task.
func countResponses(t *testing.T, c *client.Client, task, agent string) (n int) {
	t.Helper()
	for entry, err := range c.Entries(t.Context(), task, agent, 0) {
		if err != nil {
			t.Fatal(err)
		}
		var m mail.Message
		if entry.Kind == "in" && json.Unmarshal(entry.Message, &m) == nil && m.Type == mail.Response {
			n++
		}
	}
	return n
}

// wantQuestions looks which questions a host's log of messages has, each as its gateway,
// direction and type. A line may come after the answer.
func wantQuestions(t *testing.T, p *hosttest.Process, want ...string) {
	t.Helper()
	var got []string
	hosttest.Eventually(t, "the log has "+strings.Join(want, ", "), func() bool {
		got = questionsIn(t, filepath.Join(p.Data(), "messages.log"))
		return len(got) >= len(want)
	})
	if !slices.Equal(got, want) {
		t.Errorf("the log has %q, want %q", got, want)
	}
}

// questionsIn are the questions in a log of messages that were taken or sent.
func questionsIn(t *testing.T, path string) (list []string) {
	t.Helper()
	kinds := []string{"SendMessage", "REQUEST", "request", "task_request", "tools/call", "ask"}
	for line := range strings.Lines(hosttest.ReadText(t, path)) {
		var entry struct {
			Outcome string
			Message struct{ Gateway, Direction, Type string }
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			continue // it is being written
		}
		m := entry.Message
		if slices.Contains(kinds, m.Type) && (entry.Outcome == "accepted" || entry.Outcome == "delivered") {
			list = append(list, m.Gateway+" "+m.Direction+" "+m.Type)
		}
	}
	slices.Sort(list)
	return list
}

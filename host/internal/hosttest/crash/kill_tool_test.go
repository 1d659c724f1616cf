package crash_test

import (
	"fmt"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// orderingSwarm takes the address of the request log, to which the actions of an agent of
// bundled:tool may write.
const orderingSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "shop"
[agents.shop]
source = "bundled:tool"
enable_entrypoint = true
can_complete_tasks = true
actions = ["http_post"]
[actions.http_post]
source = "bundled:http"
allow = { http = ["POST %[1]s"], http_private = true }
[[auth.keys]]
id = "crash"
role = "user"
key = "a-key-for-the-crash-test"
`

// TestKillTool (I-034): the host is killed while an action of bundled:tool waits for its server, and
// after it has answered. The request goes on where it was: its caller has one answer, and what was
// sent twice has one key, by which its server knows it.
func TestKillTool(t *testing.T) {
	t.Parallel()
	log := newRequestLog(t)
	p := hosttest.StartProcess(t, fmt.Sprintf(orderingSwarm, log.url))
	c := p.Client()
	post := client.Post{Task: "order", Key: "order", Body: fmt.Sprintf(`{"tool":"http_post","parameters":{"url":"%s/order/1","body":{"item":"tea"}}}`, log.url)}
	path, release := log.hold()
	if _, err := c.PostAsync(t.Context(), post); err != nil {
		t.Fatal(err)
	}
	<-path
	p.Kill()
	release()
	for range 2 {
		p.Start()
		c = p.Client()
		a, err := c.PostMessage(t.Context(), post) // a repeat, which has the answer
		if err != nil || !strings.HasPrefix(a.Body, `{"status":"success","output":"`+hosttest.AnswerTo("/order/1")) {
			t.Errorf("the request is answered with %s, %v", a.Body, err)
		}
		p.Kill()
	}
	p.Start()
	calls := log.takeCalls()
	sent := calls["/order/1"]
	if len(calls) != 1 || len(sent) != 2 || sent[0].key == "" || sent[0].key != sent[1].key || sent[0].what != sent[1].what {
		t.Errorf("the server got %v", calls)
	}
}

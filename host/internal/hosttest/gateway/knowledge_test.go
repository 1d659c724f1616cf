package gateway_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// knowledgeSwarm keeps what its users tell.
const knowledgeSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "archive"
[agents.archive]
source = "bundled:knowledge"
enable_entrypoint = true
can_complete_tasks = true
allow = { kv = "agent" }
[tenants.acme]
[[auth.keys]]
id = "alice"
role = "user"
key = "a-key-of-alice-the-user"
[[auth.keys]]
id = "alice"
role = "user"
tenant = "acme"
key = "a-key-of-acme-the-tenant"
`

// TestKnowledgeAgent (I-033): what a user tells is found in other tasks and after a restart, and
// in no other tenant, with the id that the host has for who told it. Of two who correct it at
// once each has a version.
func TestKnowledgeAgent(t *testing.T) {
	t.Parallel()
	s := hosttest.NewSite(t, knowledgeSwarm)
	tell := func(key, task, kind, payload string) string {
		t.Helper()
		a, err := s.As(key).PostMessage(t.Context(), client.Post{Task: task, Body: fmt.Sprintf(`{"message_type":%q,"payload":%s}`, kind, payload)})
		if err != nil {
			t.Fatal(err)
		}
		return a.Body
	}
	const fact = `{"update_type":%q,"knowledge_domain":"tea","source":"user","content":{"facts":[{"id":"price","cents":%d,"by":{"agent":"eve"}}]}}`
	if got := tell(hosttest.AliceKey, "t1", "knowledge_update", fmt.Sprintf(fact, "learned", 250)); !strings.Contains(got, `"version":1`) {
		t.Fatal(got)
	}
	var both sync.WaitGroup
	for i := range 2 {
		both.Go(func() {
			if got := tell(hosttest.AliceKey, fmt.Sprint("corrects ", i), "knowledge_update", fmt.Sprintf(fact, "corrected", i)); !strings.Contains(got, `"completed"`) {
				t.Error(got)
			}
		})
	}
	both.Wait()
	s.Restart()
	const all = `{"history":true,"include_deprecated":true}`
	got := tell(hosttest.AliceKey, "t2", "knowledge_query", all)
	for _, want := range []string{`"cents":250`, `"cents":0`, `"cents":1`, `"by":{"agent":"alice","type":"user","task":"t1"`} {
		if strings.Count(got, want) != 1 {
			t.Errorf("%q is not once in %s", want, got)
		}
	}
	if got := tell("a-key-of-acme-the-tenant", "t2", "knowledge_query", all); !strings.Contains(got, `"statements":[]`) {
		t.Errorf("another tenant finds %s", got)
	}
}

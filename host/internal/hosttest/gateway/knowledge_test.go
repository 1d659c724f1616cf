package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"skep/host/client"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/hosttest"
)

// openKnowledge is knowledgeSwarm for the agents of the partner depot.
var openKnowledge = strings.Replace(knowledgeSwarm, "can_complete_tasks = true\n", "can_complete_tasks = true\nenable_interswarm = true\nexpose = [\"iacp\"]\n", 1) + `
[gateways.iacp]
listen = "LISTEN"
[gateways.iacp.partners.depot]
ids = ["depot-*"]
may = ["ask", "tell"]
[[auth.keys]]
id = "depot"
role = "agent"
key = "a-token-of-the-realm-depot"
`

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

// TestKnowledgeOfPartners (I-032, I-033): agents of a partner tell, correct and deprecate over IaCP,
// and ask. Each version has the agent that told it; what is too long for a message changes nothing,
// and is refused where an answer is owed.
func TestKnowledgeOfPartners(t *testing.T) {
	t.Parallel()
	p, addr := hosttest.NewProcess(t, "127.0.0.1"), hosttest.FreeAddress(t, "127.0.0.1")
	p.Launch(strings.NewReplacer("LISTEN", addr, `entrypoint = "archive"`, "entrypoint = \"archive\"\nenable_interswarm = true").Replace(openKnowledge))
	p.ClientAs(hosttest.AliceKey) // it serves
	depot, err := iacptest.Dial(addr, "a-token-of-the-realm-depot")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = depot.Close() })
	send := func(from, kind string, payload map[string]any) {
		t.Helper()
		m := iacptest.New(kind, from, "archive", payload)
		m.Metadata = map[string]any{"requires_response": kind == "task_request"}
		if err := depot.Send(m.Text()); err != nil {
			t.Fatal(err)
		}
	}
	update := func(kind string, facts ...any) map[string]any {
		return map[string]any{"update_type": kind, "knowledge_domain": "tea", "confidence": 0.9, "source": "external", "content": map[string]any{"facts": facts, "rules": []any{}, "patterns": []any{}}}
	}
	query := func(body string) string {
		t.Helper()
		send("depot-9", "task_request", map[string]any{"task_type": "mail.message", "parameters": map[string]any{"subject": "s", "body": body}})
		return readKind(t, depot, "task_response").Raw
	}
	const all = `{"message_type":"knowledge_query","payload":{"history":true,"include_deprecated":true}}`
	send("depot-1", "knowledge_update", update("learned", map[string]any{"id": "price", "cents": 250}, "water boils"))
	has := func(what string, words ...string) {
		t.Helper()
		var got string
		hosttest.Eventually(t, what, func() bool {
			got = query(all)
			return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(got, word) })
		})
		if t.Failed() {
			t.Fatal(got)
		}
	}
	has("both are learned", `"cents":250`, `"water boils"`)
	send("depot-2", "knowledge_update", update("corrected", map[string]any{"id": "price", "cents": 300}))
	has("the price is corrected", `"cents":300`)
	send("depot-3", "knowledge_update", update("deprecated", map[string]any{"id": "price"}))
	send("depot-4", "context_share", map[string]any{"context_type": "insights", "scope": "global", "data": "bees", "relevance_score": 0.5, "tags": []string{"b"}})
	has("the price is deprecated, and bees are shared", `"state":"deprecated"`, `"value":"bees"`)
	got := query(all)
	for _, want := range []string{
		`"value":{"cents":250,"id":"price"},"state":"learned","confidence":0.9,"source":"external","by":{"agent":"depot-1@depot","type":"agent"`,
		`"value":{"cents":300,"id":"price"},"state":"corrected","confidence":0.9,"source":"external","by":{"agent":"depot-2@depot","type":"agent"`,
		`"value":{"cents":300,"id":"price"},"state":"deprecated","confidence":0.9,"source":"external","by":{"agent":"depot-3@depot","type":"agent"`,
		`"value":"bees","state":"learned","scope":"global","tags":["b"],"confidence":0.5,"by":{"agent":"depot-4@depot","type":"agent"`,
	} {
		if strings.Count(got, want) != 1 {
			t.Errorf("%s is not once in %s", want, got)
		}
	}
	long := strings.Repeat("x", 300<<10)
	send("depot-5", "knowledge_update", update("learned", long))
	refused := query(long)
	if !strings.Contains(refused, "256 KiB") || !strings.Contains(refused, `"rejected"`) || strings.Contains(query(all), "depot-5") {
		t.Errorf("what is too long is answered with %.500s", refused)
	}
}

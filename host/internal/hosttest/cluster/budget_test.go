package cluster_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"skep/abi"
	"skep/host/client"
	"skep/host/internal/hosttest"
	"skep/host/internal/store/pgtest"
	"skep/host/internal/turn/model/modeltest"
)

// spendingSwarm is a swarm of one script that asks the model at an address, which costs ten millionths of a dollar
// a token, with a day's budget.
const spendingSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:script.wasm"
enable_entrypoint = true
can_complete_tasks = true
allow = { llm = ["default"] }
[models.default]
provider = "openai"
base_url = "%s/v1"
model = "m"
max_tokens = 100
allow_private = true
input_usd_per_mtok = 10
output_usd_per_mtok = 10
[tenants.default]
%s
[[auth.keys]]
id = "crash"
role = "user"
key = "a-key-for-the-crash-test"
`

// budgets are the budgets of a day of 60,000 tokens, and what they count.
var budgets = map[string]struct {
	key, refusal string
	perToken     int64
	spent        func(client.Usage) int64
}{
	"tokens": {"tokens_per_day = 60_000", "the call may use up to ", 1, func(u client.Usage) int64 { return u.Tokens }},
	"money":  {"usd_per_day = 0.6", "the call may cost up to $", 10, func(u client.Usage) int64 { return u.MicroUSD }},
}

// TestBudget: whatever 64 callers of three hosts ask a model for at once, their tenant's budget of
// the day is never passed, by what the provider has counted. Each host comes to its end, and what is
// left then is what hosts hold for a call that no longer fits.
func TestBudget(t *testing.T) {
	t.Parallel()
	hosttest.SkipOnServer(t, "its hosts share a server of their own")
	const body = `[["llm.chat",{"model":"default","messages":[{"role":"user","content":"Tea?"}]}],["task_complete",{"finish_message":"{{0}}"}]]`
	for name, b := range budgets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const callers = 64
			bound, each := 60_000*b.perToken, 600*b.perToken
			most := (1024 + 32 + 4 + 100) * b.perToken // what one call may cost
			s := modeltest.OpenAI(func(modeltest.Request) modeltest.Reply {
				return modeltest.Reply{Text: []string{"Yes."}, Usage: &abi.ChatUsage{InputTokens: 500, OutputTokens: 100}}
			})
			provider := httptest.NewServer(s)
			t.Cleanup(provider.Close)
			var clients []*client.Client
			for _, p := range hostsRunning(t, 3, pgtest.Schema(t), fmt.Sprintf(spendingSwarm, provider.URL, b.key)) {
				clients = append(clients, p.Client())
			}
			var spent atomic.Int64
			ask := func(at int) (ended bool) {
				c := clients[at%len(clients)]
				a, err := c.PostMessage(t.Context(), client.Post{Body: body})
				if err != nil {
					t.Errorf("host %d: %v", at, err)
					return true
				}
				task, err := c.Task(t.Context(), a.Task)
				if err != nil {
					t.Error(err)
				}
				spent.Add(b.spent(task.Usage))
				if a.Body == "Yes." {
					return false
				}
				key, _, _ := strings.Cut(b.key, " ")
				if !strings.HasPrefix(a.Body, "ERROR LIMIT: "+b.refusal) || !strings.Contains(a.Body, "[tenants.default] "+key) {
					t.Errorf("host %d: %q", at, a.Body)
				}
				return true
			}
			var all sync.WaitGroup
			for n := range callers {
				all.Go(func() {
					for !ask(n) {
					}
				})
			}
			all.Wait()
			for n := range clients { // what others had reserved is there again
				for !ask(n) {
				}
			}
			got := int64(len(s.Requests())) * each
			if got > bound || got <= bound-3*most || spent.Load() != got {
				t.Errorf("%d of %d are used, by the tasks %d", got, bound, spent.Load())
			}
		})
	}
}

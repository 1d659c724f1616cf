package agent_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"skep/abi"
	"skep/host"
	"skep/host/client"
	"skep/host/internal/definition/config"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
	"skep/host/internal/turn/model/modeltest"
)

// This file has the line "budget exhausted mid-task, model down: the task ends or
// resumes as specified and the host stays healthy".

// budgetSwarm is a lead that asks a clerk, both of bundled:llm, for two tenants.
const budgetSwarm = `schema = 1
[swarm]
name = "desk"
entrypoint = "lead"
[agents.lead]
source = "bundled:llm"
enable_entrypoint = true
can_complete_tasks = true
comm_targets = ["clerk"]
allow = { llm = ["default"] }
params = { corrections = 0 }
[agents.clerk]
source = "bundled:llm"
comm_targets = ["lead"]
allow = { llm = ["default"] }
params = { corrections = 0 }
%s
[models.default]
provider = "script"
cassette = "rules.toml"
max_tokens = 200
input_usd_per_mtok = 1
output_usd_per_mtok = 1
[[auth.keys]]
id = "ann"
role = "user"
tenant = "acme"
key = "a-key-of-ann-of-acme"
[[auth.keys]]
id = "bob"
role = "user"
tenant = "bees"
key = "a-key-of-bob-of-bees"
[tenants.acme]
%s
[tenants.bees]
[limits]
%s
`

// budgetRules use 39,500 tokens until the clerk asks for the second time, of which
// 34,500 are the clerk's.
const budgetRules = `
[[rule]]
system = 'the agent "lead"'
last = [{ role = "user", match = 'how many' }]
calls = [{ name = "send_request", arguments = '{"target":"clerk","subject":"figures","body":"the hives?"}' }, { name = "await_message" }]
usage = { input_tokens = 4000, output_tokens = 1000 }
[[rule]]
system = 'the agent "clerk"'
last = [{ role = "user", match = 'the hives' }]
calls = [{ name = "help", arguments = '{"get_summary":true}' }]
usage = { input_tokens = 34000, output_tokens = 500 }
[[rule]]
system = 'the agent "clerk"'
calls = [{ name = "send_response", arguments = '{"target":"lead","subject":"Re: figures","body":"There are 7."}' }]
usage = { input_tokens = 1, output_tokens = 1 }
[[rule]]
system = 'the agent "lead"'
last = [{ role = "user", match = 'There are 7' }]
text = "7 hives."
usage = { input_tokens = 1, output_tokens = 1 }
[[rule]]
system = 'the agent "lead"'
last = [{ role = "user", match = 'LIMIT' }]
text = "The clerk may not think any more."
usage = { input_tokens = 1, output_tokens = 1 }
`

func clientAs(t *testing.T, r *hosttest.Host, key string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{URL: "http://" + r.Addr(), Token: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestBudgetsEndMidTask: each budget comes to its end in the second turn of a task, at
// the second agent. Its turn fails with the key to raise; what is left to spend decides
// whether the other agent can go on. Budgets of a task and of an agent are whole again
// in the next task, a tenant's is not, and another tenant never sees it.
func TestBudgetsEndMidTask(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, agent, tenant, limits string
		key                         string
		goesOn, again, others       bool
	}{
		{"a task's tokens", "", "", "task_tokens = 40000", "raise [limits] task_tokens", false, true, false},
		{"a task's money", "", "", "task_usd = 0.04", "raise [limits] task_usd", false, true, false},
		{"an agent's tokens", "limits = { tokens = 35000 }", "", "", "", true, true, false},
		{"an agent's money", "limits = { usd = 0.035 }", "", "", "", true, true, false},
		{"a tenant's tokens", "", "tokens_per_day = 40000", "", "raise [tenants.acme] tokens_per_day", false, false, true},
		{"a tenant's money", "", "usd_per_day = 0.04", "", "raise [tenants.acme] usd_per_day", false, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := startLLM(t, fmt.Sprintf(budgetSwarm, c.agent, c.tenant, c.limits), budgetRules)
			ann, bob := clientAs(t, r, "a-key-of-ann-of-acme"), clientAs(t, r, "a-key-of-bob-of-bees")
			want := c.key
			if c.goesOn {
				want = "The clerk may not think any more."
			}
			for _, task := range []string{"one", "two"} {
				a, err := ann.PostMessage(t.Context(), client.Post{Task: task, Body: "how many?"})
				if err != nil || !strings.Contains(a.Body, want) || !c.goesOn && !strings.Contains(a.Body, "LIMIT") {
					t.Fatalf("%s: answered %q, %v; want %q", task, a.Body, err, want)
				}
				info, err := ann.Task(t.Context(), task)
				least := int64(39_500)
				if task == "two" && !c.again {
					least = 0
				}
				if err != nil || info.Usage.Tokens < least || info.Usage.Tokens > least+10 || info.Usage.MicroUSD != info.Usage.Tokens {
					t.Errorf("%s: it has cost %+v, %v; want %d tokens", task, info.Usage, err, least)
				}
			}
			if c.goesOn {
				heard := ""
				for e, err := range ann.Entries(t.Context(), "one", "lead", 0) {
					if err != nil {
						t.Fatal(err)
					}
					raw, _ := json.Marshal(e)
					heard += string(raw)
				}
				if want := "raise [agents.clerk] limits."; !strings.Contains(heard, want) {
					t.Errorf("the lead has not heard %q: %s", want, heard)
				}
			}
			if c.others {
				if a, err := bob.PostMessage(t.Context(), client.Post{Task: "one", Body: "how many?"}); err != nil || a.Body != "7 hives." {
					t.Errorf("the other tenant: %q, %v", a.Body, err)
				}
			}
		})
	}
}

// modelSwarm is a swarm of one script that asks the model at an address.
func askingSwarm(base, more string) string {
	return fmt.Sprintf(`schema = 1
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
%s
[[auth.keys]]
id = "crash"
role = "user"
key = "a-key-for-the-crash-test"
[[auth.keys]]
id = "bob"
role = "user"
tenant = "bees"
key = "a-key-of-bob-of-bees"
[tenants.bees]
`, base, more)
}

func startAsking(t *testing.T, base, more string) *hosttest.Host {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string][]byte{"swarm.toml": []byte(askingSwarm(base, more)), "script.wasm": guests.Bytes(t, "plugins/script")} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Load(filepath.Join(dir, "swarm.toml"), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := hosttest.Run(t, host.Options{Config: cfg, DataDir: t.TempDir()})
	r.StopAtEnd(t)
	return r
}

func startProvider(t *testing.T, answer modeltest.Answer) (*modeltest.Server, string) {
	t.Helper()
	s := modeltest.OpenAI(answer)
	wire := httptest.NewServer(s)
	t.Cleanup(wire.Close)
	return s, wire.URL
}

var chatStep = hosttest.Step{"llm.chat", hosttest.Args{"model": "default", "messages": []any{hosttest.Args{"role": "user", "content": "Tea?"}}}}

// chats is a script that asks n times and reports the answers.
func chats(n int) string {
	steps := slices.Repeat([]hosttest.Step{chatStep}, n)
	places := make([]string, n)
	for i := range places {
		places[i] = fmt.Sprintf("{{%d}}", i)
	}
	raw, err := json.Marshal(append(steps, hosttest.Step{"task_complete", hosttest.Args{"finish_message": strings.Join(places, "\n")}}))
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// TestTurnsTogetherKeepTheBudget: turns of many tasks that ask at once never pass their
// tenant's budget together. What the provider has counted is what the tasks have cost,
// to the token. An agent that is refused ends its task with what it has.
func TestTurnsTogetherKeepTheBudget(t *testing.T) {
	t.Parallel()
	const bound, each, tasks, calls = 30_000, 600, 16, 8
	s, base := startProvider(t, func(modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Text: []string{"Yes."}, Usage: &abi.ChatUsage{InputTokens: 500, OutputTokens: 100}}
	})
	r := startAsking(t, base, fmt.Sprintf("[tenants.default]\ntokens_per_day = %d", bound))
	c := clientAs(t, r, hosttest.ScriptKey)
	var spent, refused atomic.Int64
	ask := func(task string) {
		a, err := c.PostMessage(t.Context(), client.Post{Task: task, Body: chats(calls)})
		if err != nil {
			t.Errorf("%s: %v", task, err)
			return
		}
		for _, line := range strings.Split(a.Body, "\n") {
			if strings.HasPrefix(line, "ERROR LIMIT: the call may use up to ") && strings.Contains(line, "[tenants.default] tokens_per_day") {
				refused.Add(1)
			} else if line != "Yes." {
				t.Errorf("%s: %q", task, line)
			}
		}
		info, err := c.Task(t.Context(), task)
		if err != nil {
			t.Error(err)
		}
		spent.Add(info.Usage.Tokens)
	}
	var posts sync.WaitGroup
	for n := range tasks {
		posts.Go(func() { ask(fmt.Sprint("task-", n)) })
	}
	posts.Wait()
	for n := 0; refused.Load() < calls || n < 6; n++ { // what others had reserved is there again
		ask(fmt.Sprint("last-", n))
		if n > 20 {
			t.Fatal("the budget does not come to its end")
		}
	}
	const most = 1024 + 32 + 4 + 100 // what one call may cost
	got := int64(len(s.Requests())) * each
	if got > bound || got <= bound-most || spent.Load() != got {
		t.Errorf("%d of %d tokens are used, by the tasks %d", got, bound, spent.Load())
	}
	if a, err := clientAs(t, r, "a-key-of-bob-of-bees").PostMessage(t.Context(), client.Post{Body: chats(2)}); err != nil || a.Body != "Yes.\nYes." {
		t.Errorf("the other tenant: %q, %v", a.Body, err)
	}
}

// TestKillBetweenReserveAndSettle kills the host while the provider works on an answer.
// The next life sends the call once more under the same key, or not at all where the
// operator forbids it, and the task has cost exactly one answer, or all that was
// reserved; so has the tenant's day.
func TestKillBetweenReserveAndSettle(t *testing.T) {
	t.Parallel()
	const most, each = 1024 + 32 + 4 + 100, 15
	for _, again := range []bool{true, false} {
		t.Run(fmt.Sprint("again ", again), func(t *testing.T) {
			t.Parallel()
			working, gone := make(chan struct{}, 1), make(chan struct{})
			s, base := startProvider(t, func(r modeltest.Request) modeltest.Reply {
				if r.N == 1 {
					working <- struct{}{}
					<-gone
				}
				return modeltest.Reply{Text: []string{"Yes."}, Usage: &abi.ChatUsage{InputTokens: 10, OutputTokens: 5}}
			})
			text := askingSwarm(base, fmt.Sprintf("[tenants.default]\ntokens_per_day = %d", 3*each+2*most))
			if !again {
				text = strings.Replace(text, `llm = ["default"]`, `llm = ["default"], retry_in_doubt = false`, 1)
			}
			v := hosttest.StartProcess(t, text)
			c := v.Client()
			want, cost, requests := "Yes.\nYes.\nYes.", int64(3*each), 4
			if !again {
				want, cost, requests = "Yes.\nERROR UNAVAILABLE: the host stopped before the answer came", 2*each+most, 3
			}
			done := make(chan error, 1)
			go func() {
				a, err := c.PostMessage(t.Context(), client.Post{Task: "t", Key: "k", Body: chats(3)})
				if err == nil && !strings.HasPrefix(a.Body, want) {
					err = fmt.Errorf("answered %q, want %q", a.Body, want)
				}
				done <- err
			}()
			<-working
			v.Kill()
			close(gone)
			v.Start()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			info, err := c.Task(t.Context(), "t")
			if err != nil || info.Usage.Tokens != cost || len(s.Requests()) != requests {
				t.Errorf("%d requests cost %d tokens, %v; want %d and %d", len(s.Requests()), info.Usage.Tokens, err, requests, cost)
			}
			keys := map[string]int{}
			for _, r := range s.Requests() {
				keys[r.Header.Get("Idempotency-Key")]++
			}
			if len(keys) != 3 {
				t.Errorf("three calls had %d keys", len(keys))
			}
			// The day has the same: a call more than is left is refused.
			left := (3*each + 2*most - cost) / each
			fit := 0
			a, err := c.PostMessage(t.Context(), client.Post{Task: "u", Key: "k2", Body: chats(int(left))})
			for _, line := range strings.Split(a.Body, "\n") {
				if line == "Yes." {
					fit++
				}
			}
			if want := int((3*each+2*most-cost-most)/each) + 1; err != nil || fit != want {
				t.Errorf("%d more calls fit into the day, %v; want %d", fit, err, want)
			}
		})
	}
}

// TestModelDown: a provider that is overloaded or away is asked as often as retries
// says and no more, and costs nothing; an agent may end its task without it, and one
// that cannot leaves a task that goes on when the model is back.
func TestModelDown(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	down.Store(true)
	s, base := startProvider(t, func(modeltest.Request) modeltest.Reply {
		if down.Load() {
			return modeltest.Reply{Status: http.StatusServiceUnavailable, Header: map[string]string{"Retry-After-Ms": "1"}, Failure: modeltest.Failure{Type: "server_error", Message: "maintenance"}}
		}
		return modeltest.Reply{Text: []string{"Yes."}, Usage: &abi.ChatUsage{InputTokens: 10, OutputTokens: 5}}
	})
	r := startAsking(t, base, "retries = 2")
	c := clientAs(t, r, hosttest.ScriptKey)
	a, err := c.PostMessage(t.Context(), client.Post{Task: "t", Body: chats(2)})
	const want = "ERROR UNAVAILABLE: models.default: the provider has too much to do: maintenance (status 503)"
	if err != nil || a.Body != want+"\n"+want || len(s.Requests()) != 6 {
		t.Errorf("after %d requests: %q, %v", len(s.Requests()), a.Body, err)
	}
	if info, err := c.Task(t.Context(), "t"); err != nil || info.Usage.Tokens != 0 {
		t.Errorf("it has cost %+v, %v", info.Usage, err)
	}
	l := startLLMAt(t, "openai", base+"/v1").Client(t)
	if a, err = l.PostMessage(t.Context(), client.Post{Task: "l", Body: "tea?"}); err != nil || !strings.Contains(a.Body, "UNAVAILABLE") || !strings.Contains(a.Body, "maintenance") {
		t.Errorf("the agent that only thinks: %q, %v", a.Body, err)
	}
	down.Store(false)
	if a, err = l.PostMessage(t.Context(), client.Post{Task: "l", Body: "tea?"}); err != nil || a.Body != "Yes." {
		t.Errorf("when the model is back: %q, %v", a.Body, err)
	}
	if a, err = c.PostMessage(t.Context(), client.Post{Task: "t", Body: chats(1)}); err != nil || a.Body != "Yes." {
		t.Errorf("when the model is back: %q, %v", a.Body, err)
	}
}

package crash_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/client"
	"skep/host/internal/hosttest"
	"skep/spec/mail"
)

// framedHost is the file of a host whose teller asks the clerk of another one, over IaCP. The names
// of its agents begin with its own.
const framedHost = `schema = 1
[swarm]
name = "NAME"
entrypoint = "NAME-teller"
enable_interswarm = true
[agents.NAME-teller]
source = "file:script.wasm"
comm_targets = [TARGETS]
enable_entrypoint = true
enable_interswarm = true
expose = ["iacp"]
[agents.NAME-clerk]
source = "file:script.wasm"
comm_targets = [TARGETS]
enable_interswarm = true
can_complete_tasks = true
allow = { kv = "task" }
expose = ["iacp"]
[limits]
task_messages = 0
[gateways.iacp]
listen = "LISTEN"
rate_limit = { requests = 1_000_000, per = "1m" }
ack = "2s"
PARTNERS
[[auth.keys]]
id = "crash"
role = "user"
key = "a-key-for-the-crash-test"
`

// framedPartner is a partner of a framedHost, with the ids of its agents.
const framedPartner = `[gateways.iacp.partners.NAME]
ids = [IDS]
hub = true
may = ["ask", "tell", "relay"]
timeout = "10m"
give_up = "30m"
[[auth.keys]]
id = "NAME"
role = "agent"
key = "a-token-of-the-realm-NAME"
`

// framedHosts are the processes of hosts that are connected over IaCP.
type framedHosts struct {
	t      *testing.T
	hosts  map[string]*hosttest.Process
	listen map[string]string
}

// start starts a host with its partners' tables.
func (f *framedHosts) start(name string, partners ...string) {
	f.t.Helper()
	f.hosts[name] = hosttest.NewProcess(f.t, "127.0.0.1")
	var targets []string
	for _, p := range []string{"hive", "depot", "mill"} {
		if strings.Contains(strings.Join(partners, ""), "[gateways.iacp.partners."+p+"]") {
			targets = append(targets, fmt.Sprintf("%q", "*@"+p))
		}
	}
	f.hosts[name].Launch(strings.NewReplacer("NAME", name, "LISTEN", f.address(name), "TARGETS", strings.Join(targets, ", "), "PARTNERS", strings.Join(partners, "")).Replace(framedHost))
}

// address is where a host listens for IaCP.
func (f *framedHosts) address(name string) string {
	if f.listen[name] == "" {
		f.listen[name] = hosttest.FreeAddress(f.t, "127.0.0.1")
	}
	return f.listen[name]
}

// partner is the table of a partner that connects, with the ids of its agents.
func (*framedHosts) partner(name, ids string) string {
	return strings.NewReplacer("NAME", name, "IDS", fmt.Sprintf("%q", ids)).Replace(framedPartner)
}

// called is the table of a partner to which a host connects, as caller.
func (f *framedHosts) called(name, ids, caller string) string {
	url := fmt.Sprintf("url = \"iacp://%s\"\nallow_private = true\napi_key = \"a-token-of-the-realm-%s\"\n[[auth", f.address(name), caller)
	return strings.Replace(f.partner(name, ids), "[[auth", url, 1)
}

// asker is a user whose teller asks numbered questions, and reads the answers.
type asker struct {
	t *testing.T
	c *client.Client
	// name begins the names of its host's agents, realm is the one of which these are members where
	// they ask.
	name, realm string
	after       int64
	// answers are the texts of the answers that have come.
	answers []string
}

// ask has the teller ask the clerk of a name, many questions in a turn. The number of a question
// takes the place of the one before in the clerk's store, which fails for one that comes twice, or
// before its time, and its answer has both.
func (a *asker) ask(clerk string, n int) {
	a.t.Helper()
	for from := 0; from < n; from += 50 {
		var steps []hosttest.Step
		for i := from; i < min(n, from+50); i++ {
			script := hosttest.Script(hosttest.Step{"kv.cas", hosttest.Args{"key": "n", "expect": nil, "value": "-1", "scope": "task"}},
				hosttest.Step{"kv.cas", hosttest.Args{"key": "n", "expect": fmt.Sprint(i - 1), "value": fmt.Sprint(i), "scope": "task"}},
				hosttest.Step{"send_response", hosttest.Args{"target": a.name + "-teller@" + a.realm, "subject": "s", "body": fmt.Sprint(i, " {{1}}")}})
			steps = append(steps, hosttest.Step{"send_request", hosttest.Args{"target": clerk, "subject": "s", "body": script}})
		}
		post := client.Post{Task: "t", Key: fmt.Sprint("from ", from), Body: hosttest.Script(steps...)}
		if _, err := a.c.PostAsync(a.t.Context(), post); err != nil {
			a.t.Fatal(err)
		}
	}
}

// arrive reads answers until so many have come.
func (a *asker) arrive(n int) {
	a.t.Helper()
	for limit := time.Now().Add(20 * time.Minute); len(a.answers) < n; {
		read := false
		for e, err := range a.c.Entries(a.t.Context(), "t", a.name+"-teller", a.after) {
			if err != nil {
				a.t.Fatal(err)
			}
			var m mail.Message
			if e.Kind == "in" && json.Unmarshal(e.Message, &m) == nil && m.Type == mail.Response {
				a.answers = append(a.answers, m.Payload.Body)
			}
			a.after, read = e.Seq, true
		}
		switch {
		case read:
		case time.Now().After(limit):
			a.t.Fatalf("%s has %d answers", a.name, len(a.answers))
		default:
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// check looks at the answers: one to each question, in their order, none of which came twice.
func (a *asker) check(n int) {
	a.t.Helper()
	a.arrive(n)
	if len(a.answers) != n {
		a.t.Errorf("%s has %d answers, want %d", a.name, len(a.answers), n)
	}
	for i, text := range a.answers {
		if !strings.HasPrefix(text, fmt.Sprint(i, " ")) || !strings.Contains(text, `"ok":true`) {
			a.t.Errorf("answer %d to %s: %s", i, a.name, text)
			return
		}
	}
}

// TestKillFramed (I-026, I-027, I-028, I-057, I-059, V-I15): questions go both ways between hosts, on
// a connection that one of them has opened, or handed on by a hub between them. Each host is killed
// three times. Every question reaches its agent once and in its order, and gets its answer.
func TestKillFramed(t *testing.T) {
	t.Parallel()
	n := 250
	if os.Getenv("SKEP_SOAK") != "" {
		n = 5000
	}
	for name, start := range map[string]func(*framedHosts) (to, realm map[string]string){
		"peer": func(f *framedHosts) (to, realm map[string]string) {
			f.start("depot", f.partner("hive", "hive-*"))
			f.start("hive", f.called("depot", "depot-*", "hive"))
			return map[string]string{"hive": "depot-clerk@depot", "depot": "hive-clerk@hive"}, map[string]string{"hive": "hive", "depot": "depot"}
		},
		"hub": func(f *framedHosts) (to, realm map[string]string) {
			f.start("mill", f.partner("hive", "hive-*"), f.partner("depot", "depot-*"))
			f.start("hive", f.called("mill", "depot-*", "hive"))
			f.start("depot", f.called("mill", "hive-*", "depot"))
			return map[string]string{"hive": "depot-clerk@mill", "depot": "hive-clerk@mill"}, map[string]string{"hive": "mill", "depot": "mill"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &framedHosts{t, map[string]*hosttest.Process{}, map[string]string{}}
			to, realm := start(f)
			askers := map[string]*asker{}
			for host, clerk := range to {
				askers[host] = &asker{t: t, c: f.hosts[host].Client(), name: host, realm: realm[host]}
				askers[host].ask(clerk, n)
			}
			victims := slices.Sorted(maps.Keys(f.hosts))
			for k := range 3 * len(victims) {
				askers["hive"].arrive(n * (k + 1) / (3*len(victims) + 2))
				f.hosts[victims[k%len(victims)]].Kill()
				f.hosts[victims[k%len(victims)]].Start()
			}
			for _, a := range askers {
				a.check(n)
			}
		})
	}
}

package federation_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// link is a place in front of a host that stays where it is when the host moves,
// and can be cut.
type link struct {
	*httptest.Server
	mu   sync.Mutex
	to   string
	seen []string
}

func newLink(t *testing.T) *link {
	t.Helper()
	l := &link{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		to := l.to
		l.seen = append(l.seen, r.Method+" "+r.URL.Path)
		l.mu.Unlock()
		if to == "" {
			panic(http.ErrAbortHandler)
		}
		u, _ := url.Parse(to)
		proxy := httputil.NewSingleHostReverseProxy(u)
		proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *link) setTarget(to string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = to
}

func (l *link) requests() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}

// federation is hosts that know each other.
type federation struct {
	sites map[string]*hosttest.Site
	links map[string]*link
}

// newFederation starts hosts on loopback. Those named in others are links of the caller's.
func newFederation(t *testing.T, giveUp string, names []string, others ...string) *federation {
	t.Helper()
	u := &federation{map[string]*hosttest.Site{}, map[string]*link{}}
	all := append(slices.Clone(names), others...)
	for _, name := range all {
		u.links[name] = newLink(t)
	}
	for _, name := range names {
		var targets []string
		file := ""
		for _, peer := range all {
			if peer == name {
				continue
			}
			targets = append(targets, fmt.Sprintf("%q", "*@"+peer))
			file += hosttest.PeerTables(name, peer, u.links[peer].URL, giveUp)
		}
		file = strings.NewReplacer("NAME", name, "TARGETS", strings.Join(targets, ", ")).Replace(hosttest.FederatedSwarm) + file
		u.sites[name] = hosttest.NewSite(t, file)
		u.links[name].setTarget("http://" + u.sites[name].Addr())
	}
	return u
}

// restart ends a host and starts it again on its data.
func (u *federation) restart(name string) {
	u.links[name].setTarget("")
	u.sites[name].Restart()
	u.links[name].setTarget("http://" + u.sites[name].Addr())
}

func (u *federation) ask(t *testing.T, name, task, body string) client.Answer {
	t.Helper()
	a, err := u.sites[name].As(hosttest.AliceKey).PostMessage(t.Context(), client.Post{Body: body, Subject: "q", Task: task})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Two hosts work on one task: by answer, by completion, and on over a third (R-031,
//
func TestHostsWorkTogether(t *testing.T) {
	t.Parallel()
	u := newFederation(t, "1m", []string{"hive", "depot", "yard"})
	if a := u.ask(t, "hive", "t1", hosttest.RequestOf("math@depot", "valves?")); a.Body != "boss got [Re: s] echo: valves?" {
		t.Errorf("answer %+v", a)
	}
	if a := u.ask(t, "hive", "t2", hosttest.RequestOf("boss@depot", "valves?")); a.Body != "boss got [::interswarm_task_complete::] boss got [s] valves?" {
		t.Errorf("answer %+v", a)
	}
	if a := u.ask(t, "hive", "t3", hosttest.RequestOf("boss@depot", hosttest.RequestOf("math@yard", "x"))); a.Body != "boss got [::interswarm_task_complete::] boss got [Re: s] echo: x" {
		t.Errorf("answer %+v", a)
	}
	if a := u.ask(t, "hive", "t4", hosttest.RequestOf("nobody@depot", "x")); !strings.HasPrefix(a.Body, "boss got [::router_error::]") || !strings.Contains(a.Body, "there is no agent 'nobody'") {
		t.Errorf("answer %+v", a)
	}
}

// A peer that is away when it is written to gets its mail when it is back, and a
// host that restarts meanwhile loses nothing.
func TestPeerComesBack(t *testing.T) {
	t.Parallel()
	u := newFederation(t, "1m", []string{"hive", "depot"})
	u.links["depot"].setTarget("")
	if _, err := u.sites["hive"].As(hosttest.AliceKey).PostAsync(t.Context(), client.Post{Body: hosttest.RequestOf("math@depot", "x"), Task: "t"}); err != nil {
		t.Fatal(err)
	}
	hosttest.Eventually(t, "a try", func() bool { return slices.Contains(u.links["depot"].requests(), "POST /interswarm/forward") })
	u.restart("hive")
	u.restart("depot")
	hosttest.Eventually(t, "the answer", func() bool {
		task, err := u.sites["hive"].As(hosttest.AliceKey).Task(t.Context(), "t")
		return err == nil && task.State == "completed"
	})
}

// An answer waits for who has asked, though that one was away for longer than
// requests are tried.
func TestAnswerWaitsForItsAsker(t *testing.T) {
	t.Parallel()
	u := newFederation(t, "1s", []string{"hive", "depot"})
	u.links["hive"].setTarget("")
	if _, err := u.sites["hive"].As(hosttest.AliceKey).PostAsync(t.Context(), client.Post{Body: hosttest.RequestOf("math@depot", "x"), Task: "t"}); err != nil {
		t.Fatal(err)
	}
	hosttest.Eventually(t, "tries", func() bool { return len(u.links["hive"].requests()) >= 4 })
	u.restart("depot")
	u.links["hive"].setTarget("http://" + u.sites["hive"].Addr())
	hosttest.Eventually(t, "the answer", func() bool {
		task, err := u.sites["hive"].As(hosttest.AliceKey).Task(t.Context(), "t")
		return err == nil && task.State == "completed"
	})
	if status, body := request(t, u.sites["depot"], "GET", "/skep/v1/dead-letters", hosttest.OperatorKey, ""); status != 200 || !strings.Contains(string(body), `"dead_letters":[]`) {
		t.Errorf("dead letters: %d %s", status, body)
	}
}

// A peer that stays away is given up: the agent gets an error, and the message is
// kept until it is sent again.
func TestPeerStaysAway(t *testing.T) {
	t.Parallel()
	u := newFederation(t, "1s", []string{"hive", "depot"})
	u.links["depot"].setTarget("")
	a := u.ask(t, "hive", "t", hosttest.RequestOf("math@depot", "x"))
	if !strings.HasPrefix(a.Body, "boss got [::router_error::] The message [s] to math@depot was not delivered") {
		t.Fatalf("answer %+v", a)
	}
	var page struct {
		DeadLetters []struct{ ID, Peer, Reason string } `json:"dead_letters"`
	}
	status, body := request(t, u.sites["hive"], "GET", "/skep/v1/dead-letters", hosttest.OperatorKey, "")
	if json.Unmarshal(body, &page); status != 200 || len(page.DeadLetters) != 1 || page.DeadLetters[0].Peer != "depot" {
		t.Fatalf("%d %s", status, body)
	}
	u.links["depot"].setTarget("http://" + u.sites["depot"].Addr())
	status, body = request(t, u.sites["hive"], "POST", "/skep/v1/dead-letters/"+page.DeadLetters[0].ID+"/resend", hosttest.OperatorKey, "")
	if status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	hosttest.Eventually(t, "the letter's arrival", func() bool {
		return slices.Contains(u.links["depot"].requests(), "POST /interswarm/forward") && slices.Contains(u.links["hive"].requests(), "POST /interswarm/back")
	})
	if lines := u.sites["hive"].Audited("letter.resend"); len(lines) != 1 {
		t.Errorf("audit: %q", lines)
	}
}

// request makes one request of a host with a key.
func request(t *testing.T, s *hosttest.Site, method, path, key, body string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	status, answer := answerOf(t, req)
	return status, []byte(answer)
}

func answerOf(t *testing.T, req *http.Request) (status int, body string) {
	t.Helper()
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	raw, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return rsp.StatusCode, string(raw)
}

// One message for agents of three swarms reaches all of them, each once (R-031,
// G-20).
func TestMailForManySwarms_G20(t *testing.T) {
	t.Parallel()
	u := newFederation(t, "1m", []string{"hive", "depot", "yard"})
	body := hosttest.Script(hosttest.Step{"send_broadcast", hosttest.Args{"subject": "news", "body": "n", "targets": []string{"math", "math@depot", "math@yard"}}},
		hosttest.Step{"send_request", hosttest.Args{"target": "math@depot", "subject": "s", "body": "x"}}, hosttest.Step{"await_message", hosttest.Args{}})
	if a := u.ask(t, "hive", "t", body); a.Body != "boss got [Re: s] echo: x" {
		t.Errorf("answer %+v", a)
	}
	for _, name := range []string{"hive", "depot", "yard"} {
		hosttest.Eventually(t, "the news at "+name, func() bool {
			parts, err := hosttest.TaskParts(t, u.sites[name].Data, "t")
			return err == nil && len(parts) == 1
		})
		if err := u.sites[name].Stop(); err != nil {
			t.Fatal(err)
		}
		s := hosttest.OpenStore(t, u.sites[name].Data)
		from := "boss@hive"
		if name == "hive" {
			from = "boss"
		}
		all := hosttest.StoredMail(t, s, name, "t")
		if want := name + ".math broadcast [news] from " + from + ": n"; strings.Count(strings.Join(all, "\n"), want) != 1 {
			t.Errorf("%q is not once in %q", want, all)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// An admin who loads a definition that takes no mail of other swarms cuts off no answer
// to another tenant's task.
func TestTenantCutsOffNobody(t *testing.T) {
	t.Parallel()
	u := newFederation(t, "1m", []string{"hive", "depot"})
	u.edit(t, "hive", "[[auth.keys]]\nid = \"op\"", "[tenants.acme]\n[[auth.keys]]\nid = \"ada\"\nrole = \"admin\"\nkey = \""+hosttest.AdaKey+"\"\n"+
		"[[auth.keys]]\nid = \"ann\"\nrole = \"admin\"\ntenant = \"acme\"\nkey = \""+hosttest.AnnKey+"\"\n[[auth.keys]]\nid = \"op\"")
	hive := u.sites["hive"]
	const alone = `{"swarm":{"name":"hive","entrypoint":"boss"},"agents":{"boss":{"source":"file:script.wasm","enable_entrypoint":true,"can_complete_tasks":true}}}`
	if _, err := hive.As(hosttest.AdaKey).LoadSwarm(t.Context(), alone); err != nil {
		t.Fatal(err)
	}
	a, err := hive.As(hosttest.AnnKey).PostMessage(t.Context(), client.Post{Body: hosttest.RequestOf("math@depot", "x"), Subject: "q", Timeout: time.Minute})
	if err != nil || a.Body != "boss got [Re: s] echo: x" {
		t.Errorf("answer %+v, %v", a, err)
	}
}

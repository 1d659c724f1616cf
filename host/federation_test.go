package host_test

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

	"skep/host/client"
	"skep/host/internal/store/sqlite"
)

// federatedSwarm is a file of a swarm whose agents write to those of others:
// NAME, and for each peer [peers] and a key that it shows.
const federatedSwarm = `schema = 1
[swarm]
name = "NAME"
entrypoint = "boss"
enable_interswarm = true
[agents.boss]
source = "file:script.wasm"
comm_targets = ["math", TARGETS]
enable_entrypoint = true
can_complete_tasks = true
enable_interswarm = true
[agents.math]
source = "file:script.wasm"
comm_targets = ["boss", TARGETS]
enable_interswarm = true
[[auth.keys]]
id = "alice"
role = "user"
key = "a-key-of-alice-the-user"
[[auth.keys]]
id = "op"
role = "operator"
key = "a-key-of-the-operator"
`

const aliceKey = "a-key-of-alice-the-user"

// keyOf is the key that one swarm shows another.
func keyOf(from, to string) string { return "the-key-of-" + from + "-at-" + to }

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

func (l *link) lead(to string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = to
}

func (l *link) requests() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}

// union is hosts that know each other.
type union struct {
	sites map[string]*site
	links map[string]*link
}

// unite starts hosts on loopback. Those named in others are links of the caller's.
func unite(t *testing.T, giveUp string, names []string, others ...string) *union {
	t.Helper()
	u := &union{map[string]*site{}, map[string]*link{}}
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
			file += peerTables(name, peer, u.links[peer].URL, giveUp)
		}
		file = strings.NewReplacer("NAME", name, "TARGETS", strings.Join(targets, ", ")).Replace(federatedSwarm) + file
		u.sites[name] = newSite(t, file)
		u.links[name].lead("http://" + u.sites[name].host.Addr())
	}
	return u
}

// peerTables are what a host's file says of a peer: where it is, and its key.
func peerTables(name, peer, url, giveUp string) string {
	return fmt.Sprintf("[[auth.keys]]\nid = %q\nrole = \"agent\"\nkey = %q\n[peers.%s]\nbase_url = %q\nauth_token = %q\ngive_up = %q\n",
		peer, keyOf(peer, name), peer, url, keyOf(name, peer), giveUp)
}

// restart ends a host and starts it again on its data.
func (u *union) restart(name string) {
	u.links[name].lead("")
	u.sites[name].restart()
	u.links[name].lead("http://" + u.sites[name].host.Addr())
}

func (u *union) ask(t *testing.T, name, task, body string) client.Answer {
	t.Helper()
	a, err := u.sites[name].as(aliceKey).PostMessage(t.Context(), client.Post{Body: body, Subject: "q", Task: task})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func requestOf(target, body string) string {
	return fmt.Sprintf(`[["send_request",{"target":%q,"subject":"s","body":%q}],["await_message",{}]]`, target, body)
}

// Two hosts work on one task: by answer, by completion, and on over a third (R-031,
//
func TestHostsWorkTogether(t *testing.T) {
	t.Parallel()
	u := unite(t, "10s", []string{"hive", "depot", "yard"})
	if a := u.ask(t, "hive", "t1", requestOf("math@depot", "valves?")); a.Body != "boss got [Re: s] echo: valves?" {
		t.Errorf("answer %+v", a)
	}
	if a := u.ask(t, "hive", "t2", requestOf("boss@depot", "valves?")); a.Body != "boss got [::interswarm_task_complete::] boss got [s] valves?" {
		t.Errorf("answer %+v", a)
	}
	if a := u.ask(t, "hive", "t3", requestOf("boss@depot", requestOf("math@yard", "x"))); a.Body != "boss got [::interswarm_task_complete::] boss got [Re: s] echo: x" {
		t.Errorf("answer %+v", a)
	}
	if a := u.ask(t, "hive", "t4", requestOf("nobody@depot", "x")); !strings.HasPrefix(a.Body, "boss got [::router_error::]") || !strings.Contains(a.Body, "there is no agent 'nobody'") {
		t.Errorf("answer %+v", a)
	}
}

// A peer that is away when it is written to gets its mail when it is back, and a
// host that restarts meanwhile loses nothing.
func TestPeerComesBack(t *testing.T) {
	t.Parallel()
	u := unite(t, "1m", []string{"hive", "depot"})
	u.links["depot"].lead("")
	if _, err := u.sites["hive"].as(aliceKey).PostAsync(t.Context(), client.Post{Body: requestOf("math@depot", "x"), Task: "t"}); err != nil {
		t.Fatal(err)
	}
	eventuallyTrue(t, "a try", func() bool { return slices.Contains(u.links["depot"].requests(), "POST /interswarm/forward") })
	u.restart("hive")
	u.restart("depot")
	eventuallyTrue(t, "the answer", func() bool {
		task, err := u.sites["hive"].as(aliceKey).Task(t.Context(), "t")
		return err == nil && task.State == "completed"
	})
}

// An answer waits for who has asked, though that one was away for longer than
// requests are tried.
func TestAnswerWaitsForItsAsker(t *testing.T) {
	t.Parallel()
	u := unite(t, "1s", []string{"hive", "depot"})
	u.links["hive"].lead("")
	if _, err := u.sites["hive"].as(aliceKey).PostAsync(t.Context(), client.Post{Body: requestOf("math@depot", "x"), Task: "t"}); err != nil {
		t.Fatal(err)
	}
	eventuallyTrue(t, "tries", func() bool { return len(u.links["hive"].requests()) >= 4 })
	u.restart("depot")
	u.links["hive"].lead("http://" + u.sites["hive"].host.Addr())
	eventuallyTrue(t, "the answer", func() bool {
		task, err := u.sites["hive"].as(aliceKey).Task(t.Context(), "t")
		return err == nil && task.State == "completed"
	})
	if status, body := u.sites["depot"].raw(t, "GET", "/skep/v1/dead-letters", opKey, ""); status != 200 || !strings.Contains(string(body), `"dead_letters":[]`) {
		t.Errorf("dead letters: %d %s", status, body)
	}
}

// A peer that stays away is given up: the agent is told, and the letter is kept
// until somebody sends it again.
func TestPeerStaysAway(t *testing.T) {
	t.Parallel()
	u := unite(t, "1s", []string{"hive", "depot"})
	u.links["depot"].lead("")
	a := u.ask(t, "hive", "t", requestOf("math@depot", "x"))
	if !strings.HasPrefix(a.Body, "boss got [::router_error::] The message [s] to math@depot was not delivered") {
		t.Fatalf("answer %+v", a)
	}
	var page struct {
		Letters []struct{ ID, Peer, Reason string } `json:"dead_letters"`
	}
	status, body := u.sites["hive"].raw(t, "GET", "/skep/v1/dead-letters", opKey, "")
	if json.Unmarshal(body, &page); status != 200 || len(page.Letters) != 1 || page.Letters[0].Peer != "depot" {
		t.Fatalf("%d %s", status, body)
	}
	u.links["depot"].lead("http://" + u.sites["depot"].host.Addr())
	status, body = u.sites["hive"].raw(t, "POST", "/skep/v1/dead-letters/"+page.Letters[0].ID+"/resend", opKey, "")
	if status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	eventuallyTrue(t, "the letter's arrival", func() bool {
		return slices.Contains(u.links["depot"].requests(), "POST /interswarm/forward") && slices.Contains(u.links["hive"].requests(), "POST /interswarm/back")
	})
	if lines := u.sites["hive"].audited("letter.resend"); len(lines) != 1 {
		t.Errorf("audit: %q", lines)
	}
}

// raw makes one request with a key.
func (s *site) raw(t *testing.T, method, path, key, body string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.host.Addr()+path, strings.NewReader(body))
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
	u := unite(t, "10s", []string{"hive", "depot", "yard"})
	body := script(step{"send_broadcast", args{"subject": "news", "body": "n", "targets": []string{"math", "math@depot", "math@yard"}}},
		step{"send_request", args{"target": "math@depot", "subject": "s", "body": "x"}}, step{"await_message", args{}})
	if a := u.ask(t, "hive", "t", body); a.Body != "boss got [Re: s] echo: x" {
		t.Errorf("answer %+v", a)
	}
	for _, name := range []string{"hive", "depot", "yard"} {
		eventuallyTrue(t, "the news at "+name, func() bool {
			parts, err := partsOf(t.Context(), u.sites[name].data, "t")
			return err == nil && len(parts) == 1
		})
		if err := u.sites[name].stop(); err != nil {
			t.Fatal(err)
		}
		s, err := sqlite.Open(t.Context(), u.sites[name].data, sealed)
		if err != nil {
			t.Fatal(err)
		}
		from := "boss@hive"
		if name == "hive" {
			from = "boss"
		}
		all := storedMail(t, s, name, "t")
		if want := name + ".math broadcast [news] from " + from + ": n"; strings.Count(strings.Join(all, "\n"), want) != 1 {
			t.Errorf("%q is not once in %q", want, all)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

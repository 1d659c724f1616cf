package host_test

import (
	"bytes"
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
			targets = append(targets, fmt.Sprintf("%q, %q, %q", "boss@"+peer, "math@"+peer, "nobody@"+peer))
			file += fmt.Sprintf("[[auth.keys]]\nid = %q\nrole = \"agent\"\nkey = %q\n[peers.%s]\nbase_url = %q\nauth_token = %q\ngive_up = %q\n",
				peer, keyOf(peer, name), peer, u.links[peer].URL, keyOf(name, peer), giveUp)
		}
		file = strings.NewReplacer("NAME", name, "TARGETS", strings.Join(targets, ", ")).Replace(federatedSwarm) + file
		u.sites[name] = newSite(t, file)
		u.links[name].lead("http://" + u.sites[name].host.Addr())
	}
	return u
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

// Two hosts work on one task: by answer, by completion, and on over a third.
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
	eventuallyTrue(t, "a try", func() bool { return len(u.links["depot"].requests()) > 0 })
	u.restart("hive")
	u.restart("depot")
	eventuallyTrue(t, "the answer", func() bool {
		task, err := u.sites["hive"].as(aliceKey).Task(t.Context(), "t")
		return err == nil && task.State == "completed"
	})
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
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	raw, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return rsp.StatusCode, raw
}

// wrapped is a wrapper as the reference sends it (appendix A): with nulls and the
// token in its body.
func wrapped(from, to, kind, subject, recipient string, contributors []string) string {
	payload := map[string]any{
		"task_id": "T", "request_id": "0f3a7a34-9d0e-4f0c-9a55-6a6a0a3b8f21", "subject": subject, "body": "two in bin 9",
		"sender": map[string]string{"address_type": "agent", "address": "analyst@" + from}, "recipient": map[string]string{"address_type": "agent", "address": recipient},
		"sender_swarm": nil, "recipient_swarm": nil, "routing_info": map[string]string{"remote_swarm": to},
	}
	raw, _ := json.Marshal(map[string]any{"message": map[string]any{
		"message_id": fmt.Sprintf("1c9d8d2f-6f0e-4a39-9f5e-%012d", len(kind)+len(subject)), "source_swarm": from, "target_swarm": to, "timestamp": "2026-11-20T15:52:40.084847+00:00",
		"msg_type": kind, "payload": payload, "auth_token": "x", "metadata": map[string]any{}, "task_owner": contributors[0], "task_contributors": contributors,
	}})
	return string(raw)
}

// Appendix A with a reference peer on the other side, its quirks included: it
// knows the token in the header only, answers 500 for whatever it refuses, and
// tells its contributor string in the forward's answer.
func TestReferencePeer(t *testing.T) {
	t.Parallel()
	u := unite(t, "10s", []string{"hive"}, "beta")
	var mu sync.Mutex
	var got []string
	ref := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var in struct {
			Message struct {
				Kind         string   `json:"msg_type"`
				Token        *string  `json:"auth_token"`
				Metadata     *any     `json:"metadata"`
				Contributors []string `json:"task_contributors"`
				Payload      struct{ Subject string }
			}
		}
		if err := json.Unmarshal(raw, &in); err != nil || r.Header.Get("Authorization") != "Bearer "+keyOf("hive", "beta") || in.Message.Token == nil || in.Message.Metadata == nil || bytes.Contains(raw, []byte("null")) {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		mu.Lock()
		got = append(got, fmt.Sprintf("%s %s [%s] %s", r.URL.Path, in.Message.Kind, in.Message.Payload.Subject, strings.Join(in.Message.Contributors, " ")))
		mu.Unlock()
		_, _ = io.WriteString(w, `{"swarm":"beta","task_id":"T","status":"success","local_runner":"swarm:hive@beta"}`)
	}))
	t.Cleanup(ref.Close)
	u.links["beta"].lead(ref.URL)
	hive := u.sites["hive"]
	if _, err := hive.as(aliceKey).PostAsync(t.Context(), client.Post{Body: requestOf("boss@beta", "x"), Task: "T"}); err != nil {
		t.Fatal(err)
	}
	contributors := []string{"user:alice@hive", "swarm:hive@beta"}
	eventuallyTrue(t, "the forward", func() bool { mu.Lock(); defer mu.Unlock(); return len(got) == 1 })
	// A third party's key, another owner and a forged source are refused, with a
	// line in the audit log.
	for name, c := range map[string]struct{ key, body string }{
		"a forged source": {keyOf("beta", "hive"), wrapped("gamma", "hive", "response", "Re: s", "boss@hive", contributors)},
		"another owner":   {keyOf("beta", "hive"), wrapped("beta", "hive", "response", "Re: s", "boss@hive", []string{"user:eve@hive", "user:alice@hive", "swarm:hive@beta"})},
		"a user's key":    {aliceKey, wrapped("beta", "hive", "response", "Re: s", "boss@hive", contributors)},
	} {
		if status, body := hive.raw(t, "POST", "/interswarm/back", c.key, c.body); status != 401 && status != 404 {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	for range 2 { // the second is a repeat
		status, body := hive.raw(t, "POST", "/interswarm/back", keyOf("beta", "hive"), wrapped("beta", "hive", "response", "Re: s", "boss@hive", contributors))
		if want := `"local_runner":"user:alice@hive"`; status != 200 || !strings.Contains(string(body), want) {
			t.Fatalf("%d %s, want %s", status, body, want)
		}
	}
	eventuallyTrue(t, "the owner's notice", func() bool { mu.Lock(); defer mu.Unlock(); return len(got) == 2 })
	want := []string{"/interswarm/forward request [s] user:alice@hive", "/interswarm/back response [::task_complete::] user:alice@hive swarm:hive@beta"}
	if !slices.Equal(got, want) {
		t.Errorf("the peer got %q, want %q", got, want)
	}
	if task, err := hive.as(aliceKey).Task(t.Context(), "T"); err != nil || task.State != "completed" {
		t.Errorf("task %+v, %v", task, err)
	}
	if status, body := hive.raw(t, "POST", "/interswarm/back", keyOf("beta", "hive"), wrapped("beta", "hive", "response", "::task_complete::", "boss@hive", contributors)); status != 200 {
		t.Errorf("a late completion: %d %s", status, body)
	}
	eventuallyTrue(t, "the audit of a forged source", func() bool { return len(hive.audited("this key does not speak for the swarm")) > 0 })
}

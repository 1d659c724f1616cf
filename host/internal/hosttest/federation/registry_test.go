package federation_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// startTwo starts swarm hive, whose agents may write to all and which knows no
// swarm, and swarm depot, which knows hive.
func startTwo(t *testing.T, more string) (hive, depot *hosttest.Site, there *link) {
	t.Helper()
	here := newLink(t)
	there = newLink(t)
	fill := func(name, targets string) string {
		return strings.NewReplacer("NAME", name, "TARGETS", targets).Replace(hosttest.FederatedSwarm)
	}
	depot = hosttest.NewSite(t, fill("depot", `"boss@hive", "math@hive"`)+hosttest.PeerTables("depot", "hive", here.URL, "10s"))
	there.setTarget("http://" + depot.Addr())
	key := fmt.Sprintf("[[auth.keys]]\nid = \"depot\"\nrole = \"agent\"\nkey = %q\n", hosttest.PeerKey("depot", "hive"))
	hive = hosttest.NewSite(t, fill("hive", `"*@*"`)+key+more)
	here.setTarget("http://" + hive.Addr())
	return hive, depot, there
}

// A swarm that is registered is reached at once: by every instance, those that were
// at work before too, from one registry and by one router, with the token that it
// was registered with in the header.
func TestRegisteredSwarmIsReachedAtOnce_G12_G21_R054_R055_R056_R064_R077(t *testing.T) {
	t.Parallel()
	hive, _, there := startTwo(t, "[[auth.keys]]\nid = \"bob\"\nrole = \"user\"\nkey = \"a-key-of-bob-the-user\"\n")
	ask := func(key, task, want string) {
		t.Helper()
		a, err := hive.As(key).PostMessage(t.Context(), client.Post{Body: hosttest.RequestOf("math@depot", "valves?"), Subject: "q", Task: task})
		if err != nil || !strings.HasPrefix(a.Body, want) {
			t.Errorf("%s: %q, %v", task, a.Body, err)
		}
	}
	refused := `boss got [::router_error::] cannot send to "math@depot": unknown swarm`
	ask(hosttest.AliceKey, "t1", refused)
	ask("a-key-of-bob-the-user", "t2", refused)
	depot := client.Registration{Name: "depot", BaseURL: there.URL, Token: hosttest.PeerKey("hive", "depot")}
	if _, err := hive.As(hosttest.OperatorKey).RegisterSwarm(t.Context(), depot); err != nil {
		t.Fatal(err)
	}
	asked := slices.Clone(there.requests())
	if !slices.Equal(asked, []string{"GET /"}) {
		t.Errorf("it was asked %q when it was registered", asked)
	}
	ask(hosttest.AliceKey, "t1", "boss got [Re: s] echo: valves?")
	ask("a-key-of-bob-the-user", "t2", "boss got [Re: s] echo: valves?")
	if n := count(there.requests(), "GET /"); n != 1 {
		t.Errorf("two instances have asked %d times what it is", n)
	}
	if err := hive.As(hosttest.OperatorKey).RemoveSwarm(t.Context(), "depot"); err != nil {
		t.Fatal(err)
	}
	ask(hosttest.AliceKey, "t3", refused)
}

func count(list []string, what string) (n int) {
	for _, one := range list {
		if one == what {
			n++
		}
	}
	return n
}

// A swarm that is registered for a while is forgotten with the host, token and all.
func TestVolatileSwarmEndsWithTheHost_R065(t *testing.T) {
	t.Parallel()
	hive, _, there := startTwo(t, "")
	depot := client.Registration{Name: "depot", BaseURL: there.URL, Token: hosttest.PeerKey("hive", "depot")}
	if _, err := hive.As(hosttest.OperatorKey).RegisterSwarm(t.Context(), depot); err != nil {
		t.Fatal(err)
	}
	hive.Restart()
	if list, err := hive.As(hosttest.OperatorKey).Peers(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// [peers] is taken over by a reload: a peer that is new, one that moves, and one
// that is gone. The plan shows it.
func TestReloadPeers(t *testing.T) {
	t.Parallel()
	hive, _, there := startTwo(t, "")
	raw, err := os.ReadFile(filepath.Join(hive.Dir, "swarm.toml"))
	if err != nil {
		t.Fatal(err)
	}
	file := string(raw)
	ask := func(want string) {
		t.Helper()
		if a, err := hive.As(hosttest.AliceKey).PostMessage(t.Context(), client.Post{Body: hosttest.RequestOf("math@depot", "x")}); err != nil || !strings.HasPrefix(a.Body, want) {
			t.Errorf("%q, %v, want %q", a.Body, err, want)
		}
	}
	reload := func(more string, want ...string) {
		t.Helper()
		hive.Write(file + more)
		changes, err := hive.As(hosttest.OperatorKey).Reload(t.Context())
		var got []string
		for _, c := range changes {
			got = append(got, fmt.Sprintf("%s %s %s %v", c.Kind, c.Name, c.Change, c.Widened))
			if strings.Contains(string(c.Before)+string(c.After), "the-key-of") {
				t.Errorf("a token is shown: %s", c.After)
			}
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	peer := func(url string) string {
		return fmt.Sprintf("[peers.depot]\nbase_url = %q\nauth_token = %q\ngive_up = \"1s\"\n", url, hosttest.PeerKey("hive", "depot"))
	}
	reload(peer("http://127.0.0.1:1"), "peer depot added true")
	ask("boss got [::router_error::] The message [s] to math@depot was not delivered")
	reload(peer(there.URL), "peer depot changed true")
	ask("boss got [Re: s] echo: x")
	if p, err := hive.As(hosttest.OperatorKey).PingPeer(t.Context(), "depot"); err != nil || !p.Active || p.Version != "1.3" || p.Latency == nil {
		t.Errorf("%+v, %v", p, err)
	}
	reload("", "peer depot removed false")
	ask(`boss got [::router_error::] cannot send to "math@depot": unknown swarm`)
	if list, err := hive.As(hosttest.OperatorKey).Peers(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// A ping asks a swarm's health; a list shows the result. Neither keeps mail
// from a swarm that has missed one.
func TestPingOfAPeer(t *testing.T) {
	t.Parallel()
	u := newFederation(t, "1m", []string{"hive", "depot"})
	op := u.sites["hive"].As(hosttest.OperatorKey)
	u.links["depot"].setTarget("")
	if p, err := op.PingPeer(t.Context(), "depot"); err != nil || p.Active || p.Error == "" {
		t.Errorf("%+v, %v", p, err)
	}
	if list, err := op.Peers(t.Context()); err != nil || len(list) != 1 || list[0].Active || list[0].Error == "" || list[0].Since == "" {
		t.Errorf("%+v, %v", list, err)
	}
	u.links["depot"].setTarget("http://" + u.sites["depot"].Addr())
	if a := u.ask(t, "hive", "t", hosttest.RequestOf("math@depot", "x")); a.Body != "boss got [Re: s] echo: x" {
		t.Errorf("answer %+v", a)
	}
	var refused *client.Error
	if _, err := op.PingPeer(t.Context(), "nobody"); !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		t.Error(err)
	}
}

// The token for a peer is in the header, and in the body only for one that looks
// there.
func TestTokenInTheBody_G71(t *testing.T) {
	t.Parallel()
	for _, legacy := range []bool{false, true} {
		tokens := make(chan string, 10)
		peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			var in struct {
				Message struct {
					Token string `json:"auth_token"`
				}
			}
			if r.Method == http.MethodPost && json.Unmarshal(raw, &in) == nil {
				tokens <- r.Header.Get("Authorization") + "|" + in.Message.Token
			}
			w.WriteHeader(http.StatusForbidden)
		}))
		t.Cleanup(peer.Close)
		hive, _, _ := startTwo(t, fmt.Sprintf("[peers.yard]\nbase_url = %q\nauth_token = \"a-token-for-the-yard\"\nlegacy_body_token = %v\n", peer.URL, legacy))
		if _, err := hive.As(hosttest.AliceKey).PostMessage(t.Context(), client.Post{Body: hosttest.RequestOf("math@yard", "x")}); err != nil {
			t.Fatal(err)
		}
		want := "Bearer a-token-for-the-yard|"
		if legacy {
			want += "a-token-for-the-yard"
		}
		if got := <-tokens; got != want {
			t.Errorf("legacy_body_token = %v: %q", legacy, got)
		}
	}
}

// Operators see how each peer is that they or an admin have named.
func TestPeerMetrics(t *testing.T) {
	t.Parallel()
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"protocol_version":"1.3","swarm":{}}`))
	}))
	t.Cleanup(peer.Close)
	dir := t.TempDir()
	file := fmt.Sprintf("schema = 1\n[swarm]\nname = \"hive\"\nentrypoint = \"boss\"\n[agents.boss]\nsource = \"bundled:script\"\nenable_entrypoint = true\ncan_complete_tasks = true\n"+
		"[peers.depot]\nbase_url = %q\n[peers.gone]\nbase_url = \"http://127.0.0.1:1\"\n", peer.URL)
	if err := os.WriteFile(filepath.Join(dir, "swarm.toml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	h := hosttest.Start(t, filepath.Join(dir, "swarm.toml"), t.TempDir())
	t.Cleanup(func() { _ = h.Stop() })
	var body string
	hosttest.Eventually(t, "the first round", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.AdminAddr()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, body = answerOf(t, req)
		return strings.Contains(body, "skep_peer_checks_total 2\n")
	})
	for _, line := range []string{
		"skep_peer_checks_failed_total 1", "skep_peers 2", "skep_peers_active 1", "skep_peers_discovered 0",
		`skep_peer_up{peer="depot"} 1`, `skep_peer_up{peer="gone"} 0`, `skep_peer_latency_seconds{peer="depot"} 0.0`,
	} {
		if !strings.Contains(body, "\n"+line) {
			t.Errorf("the metrics lack %s:\n%s", line, body)
		}
	}
}

package federation_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// callResult posts calls for the boss of a swarm, and returns the result of the first.
func callResult(t *testing.T, s *hosttest.Site, key, call string) string {
	t.Helper()
	a, err := s.As(key).PostMessage(t.Context(), client.Post{Body: `[` + call + `,["task_complete",{"finish_message":"{{0}}"}]]`, Subject: "q"})
	if err != nil {
		t.Fatal(err)
	}
	return a.Body
}

// newLister is a host that lists swarms.
func newLister(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/swarms" { // they are well, and say nothing of themselves
			_, _ = w.Write([]byte("{}"))
			return
		}
		fmt.Fprintf(w, `{"swarms":[{"swarm_name":"dock","base_url":"http://%[1]s/dock"},{"name":"pier","base_url":"http://%[1]s/pier"},{"swarm_name":"hive","base_url":"http://%[1]s"}]}`, r.Host)
	}))
	t.Cleanup(s.Close)
	return s
}

// G-21: an agent writes to all swarms at their entrypoints, which they
// have published. A discovered one is known at once, and written to when its operator
// lets the host in.
func TestAgentsTellAllSwarms(t *testing.T) {
	t.Parallel()
	u := newFederation(t, "1m", []string{"hive", "depot", "yard"})
	hive, list := u.sites["hive"], newLister(t)
	const tell = `["send_interswarm_broadcast",{"subject":"news","body":"rain"}]`
	for _, name := range []string{"depot", "yard"} {
		if _, err := hive.As(hosttest.OperatorKey).PingPeer(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if got := callResult(t, hive, hosttest.AliceKey, tell); got != "SUCCESS: broadcast sent to 2 swarms" {
		t.Fatalf("told %q", got)
	}
	for _, name := range []string{"depot", "yard"} {
		hosttest.Eventually(t, "the news at "+name, func() bool {
			return strings.Contains(strings.Join(u.links[name].requests(), "\n"), "POST /interswarm/forward")
		})
	}
	got := callResult(t, hive, hosttest.OperatorKey, `["discover_swarms",{"discovery_urls":["`+list.URL+`"]}]`)
	if got != "SUCCESS: discovered 2 swarms: dock, pier" {
		t.Errorf("told %q", got)
	}
	lines := hive.Audited("swarm.discover")
	if len(lines) != 1 || !strings.Contains(lines[0], "agent boss, task ") || !strings.Contains(lines[0], "dock, pier") || !strings.Contains(lines[0], list.URL) {
		t.Errorf("audit: %q", lines)
	}
	if got = callResult(t, hive, hosttest.AliceKey, tell); got != "SUCCESS: broadcast sent to 2 swarms; passed over: 2 not to be reached" {
		t.Errorf("told %q", got)
	}
	got = callResult(t, hive, hosttest.AliceKey, `["send_interswarm_broadcast",{"subject":"news","body":"rain","target_swarms":["depot","dock"]}]`)
	if !strings.Contains(got, `broadcast not sent: "dock": authentication token missing`) {
		t.Errorf("told %q", got)
	}
	got = callResult(t, hive, hosttest.AliceKey, `["discover_swarms",{"discovery_urls":["`+list.URL+`"]}]`)
	if !strings.Contains(got, "DENIED") || !strings.Contains(got, "allow_agent_discovery = true") {
		t.Errorf("told %q", got)
	}
}

// A host that serves others calls no private address.
func TestDiscoveryStaysOutside(t *testing.T) {
	t.Parallel()
	file := strings.NewReplacer("NAME", "hive", "TARGETS", `"*@*"`).Replace(hosttest.FederatedSwarm)
	file = strings.Replace(file, "[agents.boss]", "allow_agent_discovery = true\n[agents.boss]", 1) + "[server]\npublic_url = \"https://hive.example\"\n"
	s, asked := hosttest.NewSite(t, file), 0
	list := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(list.Close)
	got := callResult(t, s, hosttest.AliceKey, `["discover_swarms",{"discovery_urls":["`+list.URL+`","http://169.254.169.254"]}]`)
	list.Close()
	if !strings.Contains(got, "UNAVAILABLE") || strings.Count(got, "an address that is not public") != 2 || asked > 0 {
		t.Errorf("told %q; asked %d times", got, asked)
	}
}

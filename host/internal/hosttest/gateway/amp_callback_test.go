package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/hosttest"
)

// mostCallbacks is how many callbacks of one partner wait for their answers at once: the router's
// attempts, and its workers for answers and for first sequences.
const mostCallbacks = 40 + 8 + 8

// callbackFlood are more callbacks than wait at once.
const callbackFlood = 120

// TestCallbackFlood (M-034, G-055): many callbacks of one partner to an address that never answers are a
// bounded number of requests at a time, and another partner is called back meanwhile.
func TestCallbackFlood(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	open, most := 0, 0
	release := make(chan struct{})
	dead := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		open++
		most = max(most, open)
		mu.Unlock()
		select {
		case <-release:
		case <-r.Context().Done():
		}
		mu.Lock()
		open--
		mu.Unlock()
	}))
	t.Cleanup(dead.Close)
	t.Cleanup(func() { close(release) })
	came := make(chan string, 10)
	live := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		came <- string(text)
	}))
	t.Cleanup(live.Close)
	tables := "[gateways.amp]\nasks = 1000\n"
	for name, url := range map[string]string{"acme": dead.URL, "mill": live.URL} {
		tables += fmt.Sprintf(`[gateways.amp.partners.%s]
url = "%s/invoke"
ids = ["%[1]s-*"]
allow_private = true
give_up = "10m"
timeout = "10m"
[[auth.keys]]
id = "%[1]s"
role = "agent"
key = "the-token-of-%[1]s-at-hive"
`, name, url)
	}
	s := hosttest.NewSite(t, strings.Replace(file("hive", tables), `expose = ["mcp", "a2a"]`, `expose = ["mcp", "a2a", "amp"]`, 1))
	delegate := func(partner, callback string, n int) {
		t.Helper()
		m := amptest.New("request", fmt.Sprint(partner, "-", n), "boss", amptest.Object{"delegation": amptest.Object{
			"parent_task_id": fmt.Sprint("task-", n),
			"subtask":        amptest.Object{"capability": "mail.message", "parameters": amptest.Object{"body": "dig"}, "completion_callback": callback},
		}})
		r, err := amptest.Client{URL: s.URL() + "/amp/v1/invoke", Token: "the-token-of-" + partner + "-at-hive"}.Send(m)
		if err != nil || r.Status != http.StatusAccepted {
			t.Fatalf("got %d %s, %v", r.Status, r.Text, err)
		}
	}
	for n := range callbackFlood {
		delegate("acme", dead.URL+"/callback", n)
	}
	hosttest.Eventually(t, "the flood is under way", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return open >= mostCallbacks/2
	})
	delegate("mill", live.URL+"/callback", 0)
	if text := <-came; !strings.Contains(text, "dig") {
		t.Errorf("called back with %s", text)
	}
	mu.Lock()
	defer mu.Unlock()
	t.Logf("at most %d of %d callbacks at once", most, callbackFlood)
	if most > mostCallbacks {
		t.Errorf("%d callbacks at once, of at most %d", most, mostCallbacks)
	}
}

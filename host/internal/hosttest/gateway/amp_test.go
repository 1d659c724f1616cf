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

// TestDelegationOverAMP (M-034, M-035, V-M24, V-M25, G-055): the result of a delegated subtask
// is sent to its callback on the partner's host, again after a failure and after a restart,
// under one id. A callback at a private address is refused, and a redirect is not followed.
func TestDelegationOverAMP(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var came []amptest.Message
	fails, redirects := 2, 0
	failed := make(chan struct{})
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("called %s", r.URL)
	}))
	t.Cleanup(elsewhere.Close)
	partner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if r.URL.Path == "/redirects" {
			mu.Lock()
			redirects++
			mu.Unlock()
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
			return
		}
		m, err := amptest.Parse(text)
		if err != nil || r.URL.Path != "/callback" {
			t.Errorf("%s got %s, %v", r.URL.Path, text, err)
		}
		mu.Lock()
		defer mu.Unlock()
		if fails--; fails >= 0 {
			w.WriteHeader(http.StatusInternalServerError)
			if fails == 0 {
				close(failed)
			}
			return
		}
		came = append(came, m)
	}))
	t.Cleanup(partner.Close)
	s := hosttest.NewSite(t, strings.Replace(file("hive", fmt.Sprintf(`[gateways.amp]
[gateways.amp.partners.acme]
url = "%s/invoke"
ids = ["agent-*"]
allow_private = true
give_up = "10m"
[[auth.keys]]
id = "acme"
role = "agent"
key = "the-token-of-acme-at-hive"
`, partner.URL)), `expose = ["mcp", "a2a"]`, `expose = ["mcp", "a2a", "amp"]`, 1))
	delegate := func(callback string) (amptest.Message, amptest.Reply) {
		t.Helper()
		m := amptest.New("request", "agent-1", "boss", amptest.Object{"delegation": amptest.Object{
			"parent_task_id": "main-task-123",
			"subtask":        amptest.Object{"capability": "mail.message", "parameters": amptest.Object{"body": "dig"}, "completion_callback": callback},
		}})
		r, err := amptest.Client{URL: s.URL() + "/aip/v1/invoke", Token: "the-token-of-acme-at-hive"}.Send(m)
		if err != nil || r.Message == nil {
			t.Fatalf("got %d %s, %v", r.Status, r.Text, err)
		}
		return m, r
	}
	for _, callback := range []string{elsewhere.URL, "https://169.254.169.254/x", "https://10.0.0.1/x", "https://[::ffff:127.0.0.1]/x", "https://localhost/x", "http://agent.example/x", "https://agent.example:8443/x"} {
		_, r := delegate(callback)
		if _, _, reason := r.Message.Fault(); r.Status != http.StatusBadRequest || reason != "CALLBACK" {
			t.Errorf("%s: got %d %s", callback, r.Status, r.Text)
		}
	}
	m, r := delegate(partner.URL + "/callback")
	if r.Status != http.StatusAccepted {
		t.Fatalf("got %d %s", r.Status, r.Text)
	}
	<-failed
	s.Restart()
	hosttest.Eventually(t, "the result is taken", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(came) > 0
	})
	mu.Lock()
	got := came[0]
	mu.Unlock()
	if got.Header("correlation_id") != m.Message.ID || got.Message.Payload["status"] != "success" || got.Message.Source.SessionID != "main-task-123" || !strings.Contains(fmt.Sprint(got.Result()), "dig") {
		t.Errorf("called back with %s", got.Text())
	}
	delegate(partner.URL + "/redirects")
	hosttest.Eventually(t, "the redirect is met again", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return redirects > 1
	})
}

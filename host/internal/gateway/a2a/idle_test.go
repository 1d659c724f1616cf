package a2a_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/gateway/gatewaytest"
)

// Bounds of one idle stream, both sides of it: they share a connection of HTTP/2 for each hundred.
const (
	mostIdleBytes      = 96 << 10 // heap and stacks; 50 KiB measured
	mostIdleGoroutines = 8
)

// openStream opens a stream of a message and reads its first event.
func (s *site) openStream(t *testing.T, agent, message string) {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{"message":{"messageId":%q,"role":"ROLE_USER","parts":[{"text":"x"}]}}}`, message)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.server.URL+"/a2a/hive/"+agent, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("A2A-Version", "1.0")
	resp, err := s.server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(resp.Header.Get("Content-Type"), "event-stream") {
		t.Fatalf("%s %q, %v", resp.Status, line, err)
	}
}

// TestIdleMemory: a stream whose agent says nothing costs so much, of a message of its own or
// of one that others read too, and a message is answered beside all of them. SKEP_TEST_SOCKETS is
// another number. The host's limit of streams is held in case 33 of the contract. It is not
// parallel: it looks at the whole process.
func TestIdleMemory(t *testing.T) {
	n := gatewaytest.Sockets(200)
	for kind, id := range map[string]func(i int) string{
		"messages of their own": func(i int) string { return fmt.Sprint("m-", i) },
		"one message":           func(int) string { return "m" },
	} {
		t.Run(kind, func(t *testing.T) {
			s := newSite(t, nil)
			s.openStream(t, "slow", id(0))
			before, idle := gatewaytest.Footprint()
			for i := range n {
				s.openStream(t, "slow", id(i+1))
			}
			after, running := gatewaytest.Footprint()
			each, goroutines := (after-before)/int64(n), (running-idle)/n
			told := fmt.Sprintf("%d streams: %d bytes and %d goroutines each", n, each, goroutines)
			t.Log(told)
			if each > mostIdleBytes || goroutines > mostIdleGoroutines {
				t.Error(told)
			}
			s.openStream(t, "echo", "beside them")
		})
	}
}

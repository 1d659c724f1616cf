package uamp_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp"
)

// Bounds of one idle stream or socket, both sides of it.
const (
	mostIdleBytes      = 128 << 10 // heap and stacks; 60 KiB measured
	mostIdleGoroutines = 12
)

// TestIdleMemory (U-051, U-054): a stream over HTTP whose agent says nothing, and a WebSocket, cost so
// much; a WebSocket beyond the limit of the realm is refused with the setting's name, and an ask is
// answered beside all of them. SKEP_TEST_SOCKETS is another number. The host's limit of streams
// is held in case 33 of the contract. It is not parallel: it looks at the whole process.
func TestIdleMemory(t *testing.T) {
	n := gatewaytest.Sockets(100)
	for kind, open := range map[string]func(t *testing.T, h *hive){
		"stream": func(t *testing.T, h *hive) {
			e := newAsk("slow", "x")
			if got := h.post(t, "lab-token", signedBy(t, h.own, e)); got.status != http.StatusAccepted {
				t.Fatalf("%+v", got)
			}
			h.openIdle(t, "/v1/stream/str-"+string(e.ID))
		},
		"WebSocket": func(t *testing.T, h *hive) {
			p := h.dial(t, "lab-token")
			p.send(signedBy(t, h.own, newAsk("slow", "x")))
			p.read()
		},
	} {
		t.Run(kind, func(t *testing.T) {
			h := newHive(t, func(o *uamp.Options) { o.Sessions, o.Runtime = n+1, gatewaytest.Unrecorded{Runtime: o.Runtime} })
			open(t, h)
			before, idle := gatewaytest.Footprint()
			for range n {
				open(t, h)
			}
			after, running := gatewaytest.Footprint()
			each, goroutines := (after-before)/int64(n), (running-idle)/n
			told := fmt.Sprintf("%d: %d bytes and %d goroutines each", n, each, goroutines)
			t.Log(told)
			if each > mostIdleBytes || goroutines > mostIdleGoroutines {
				t.Error(told)
			}
			if kind == "WebSocket" {
				_, err := h.dial(t, "lab-token").next()
				if websocket.CloseStatus(err) != websocket.StatusTryAgainLater || !strings.Contains(err.Error(), "sessions of [gateways.uamp]") {
					t.Errorf("one more has %v", err)
				}
			}
			e := newAsk("calc", "beside them")
			if got := h.post(t, "lab-token", signedBy(t, h.own, e)); got.status != http.StatusAccepted {
				t.Fatalf("%+v", got)
			}
			next, end := h.open(t, "/v1/stream/str-"+string(e.ID))
			defer end()
			if delta, ok := next(); !ok || !strings.Contains(delta, "beside them") {
				t.Errorf("the ask beside them has %q", delta)
			}
		})
	}
}

// openIdle opens a stream and reads what comes at once, the sign that it is open.
func (h *hive) openIdle(t *testing.T, path string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.server.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer lab-token")
	resp, err := h.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %q, %v", resp.Status, line, err)
	}
}

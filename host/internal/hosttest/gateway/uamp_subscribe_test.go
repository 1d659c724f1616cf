package gateway_test

import (
	"crypto/ed25519"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
	"skep/host/internal/hosttest"
)

// watching is a swarm whose agent subscribes to events of an agent of lab.
const watching = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:script.wasm"
enable_entrypoint = true
can_complete_tasks = true
actions = ["watch"]
[actions.watch]
source = "gateway:uamp/subscribe"
partners = ["lab"]
[server]
public_url = "https://hive.example"
[gateways.uamp]
[gateways.uamp.partners.lab]
url = "%s"
ids = ["did:web:lab.example:agents:*"]
keys = ['%s']
may = ["ask", "tell"]
allow_private = true
[[auth.keys]]
id = "alice"
role = "user"
key = "a-key-of-alice-the-user"
`

// TestUAMPSubscription (U-093, V-U31): an agent subscribes by an action and goes on. Its host is
// started again, then an event reaches the task, and as the task ends the subscription is
// withdrawn.
func TestUAMPSubscription(t *testing.T) {
	t.Parallel()
	reader := envelope.Reader{Strict: true, MaxBytes: 1 << 20, MaxDepth: 64}
	sent, publish := make(chan envelope.Signed, 9), make(chan struct{})
	key, err := seal.NewKey("did:web:lab.example:agents:x", ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	lab := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			select {
			case <-publish:
				w.Header().Set("Content-Type", "text/event-stream")
				next := 0
				if _, err := fmt.Sscan(r.Header.Get("Last-Event-ID"), &next); err == nil {
					next++
				}
				_, _ = fmt.Fprintf(w, "id: %[1]d\ndata: {\"delta_seq\":%[1]d,\"type\":\"chunk\",\"payload\":{\"text\":\"it is green\"}}\n\n", next)
			case <-r.Context().Done():
			}
			return
		}
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		s, err := reader.Read(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		w.Header().Set("Location", "/v1/stream/tea")
		w.WriteHeader(http.StatusAccepted)
		sent <- s
	}))
	t.Cleanup(lab.Close)
	hive := hosttest.NewSite(t, fmt.Sprintf(watching, lab.URL, key.Public().JWK()))
	body := hosttest.Script(hosttest.Step{"watch", hosttest.Args{"agent": "x", "topic": "tea", "filter": "green"}}, hosttest.Step{"await_message", hosttest.Args{}})
	post := client.Post{Task: "t", Body: body, Key: "once"}
	if _, err := hive.As(hosttest.AliceKey).PostAsync(t.Context(), post); err != nil {
		t.Fatal(err)
	}
	asked := <-sent
	if asked.Intent != envelope.Subscribe || asked.Body.Content != `{"topic":"tea","filter":"green","ttl":3600}` {
		t.Errorf("%+v", asked.Envelope)
	}
	hive.Restart()
	close(publish)
	if got, err := hive.As(hosttest.AliceKey).PostMessage(t.Context(), post); err != nil || !strings.Contains(got.Body, "it is green") {
		t.Errorf("the task ends with %+v, %v", got, err)
	}
	for s := range sent {
		if s.Intent == envelope.Cancel && s.ReplyTo == asked.ID {
			break
		}
	}
}

package crash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// partnerSwarm takes the address of an A2A partner, and whether a lost answer is asked for
// again.
const partnerSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "file:script.wasm"
enable_entrypoint = true
can_complete_tasks = true
actions = ["order"]
[actions.order]
source = "gateway:a2a/send"
partners = ["shop"]
[gateways.a2a.partners.shop]
url = "%s"
allow_private = true
retry_in_doubt = %v
[[auth.keys]]
id = "crash"
role = "user"
key = "a-key-for-the-crash-test"
`

// shop is a partner that holds the answer to its first message until it is released, and
// notes the ids of messages.
type shop struct {
	*httptest.Server
	arrived, release chan struct{}
	mu               sync.Mutex
	ids              []string
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{arrived: make(chan struct{}, 10), release: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *shop) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "agent-card.json") {
		_, _ = fmt.Fprintf(w, `{"name":"shop","description":"","version":"1","capabilities":{},"defaultInputModes":[],"defaultOutputModes":[],"skills":[],
			"supportedInterfaces":[{"url":%q,"protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, s.URL+"/rpc")
		return
	}
	var call struct {
		ID     json.RawMessage `json:"id"`
		Params struct {
			Message struct {
				MessageID string `json:"messageId"`
			} `json:"message"`
		} `json:"params"`
	}
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.ids = append(s.ids, call.Params.Message.MessageID)
	first := len(s.ids) == 1
	s.mu.Unlock()
	s.arrived <- struct{}{}
	if first {
		<-s.release
	}
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"message":{"messageId":"a","role":"ROLE_AGENT","parts":[{"text":"ordered"}]}}}`, call.ID)
}

// TestKillInActionAtPartner: a host that is killed while a partner works on an action's
// message sends it again under the same id, by which the partner finds the repeat; with
// retry_in_doubt = false the call is in doubt instead, and the partner hears nothing.
func TestKillInActionAtPartner(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		retry bool
		want  string
	}{{true, "ordered"}, {false, "UNAVAILABLE"}} {
		t.Run(fmt.Sprint("retry_in_doubt ", c.retry), func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			p := hosttest.StartProcess(t, fmt.Sprintf(partnerSwarm, s.URL, c.retry))
			body := strings.ReplaceAll(hosttest.Script(hosttest.Step{"order", hosttest.Args{"message": "tea"}},
				hosttest.Step{"task_complete", hosttest.Args{"finish_message": "{{0}}"}}), `{\u007b`, "{{")
			post := client.Post{Task: "t", Key: "k", Body: body}
			before, gone := p.Client(), make(chan struct{})
			ctx, leave := context.WithCancel(t.Context())
			go func() {
				defer close(gone)
				_, _ = before.PostMessage(ctx, post)
			}()
			<-s.arrived
			p.Kill()
			leave()
			<-gone
			close(s.release)
			p.Start()
			got, err := p.Client().PostMessage(t.Context(), post)
			if err != nil || !strings.Contains(got.Body, c.want) {
				t.Errorf("%+v, %v", got, err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if c.retry && (len(s.ids) != 2 || s.ids[0] != s.ids[1]) || !c.retry && len(s.ids) != 1 {
				t.Errorf("the partner got %q", s.ids)
			}
		})
	}
}

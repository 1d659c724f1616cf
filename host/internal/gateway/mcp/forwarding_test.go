package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/mcp"
	"skep/host/internal/swarm"
)

// forward serves the gateway as a host of several does: to each request as to one that may come
// again, with the key of its header. end ends a request from another host.
func (h *host) forward(t *testing.T, hop bool, end <-chan error) {
	t.Helper()
	listener := gatewaytest.Listener(h.Runtime, h.gateway.Mounts())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		go func() {
			select {
			case cause := <-end:
				cancel(cause)
			case <-ctx.Done():
			}
		}()
		listener.ServeHTTP(w, r.WithContext(swarm.WithForwarding(ctx, &swarm.Forwarding{Key: r.Header.Get("Key"), Hop: hop})))
	}))
	t.Cleanup(server.Close)
	h.url = server.URL
}

// keyedCall is a call of the agent that a host sends with a key.
func (h *host) keyedCall(t *testing.T, key, arguments string) string {
	t.Helper()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + newer + `","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}`
	_, _, body := h.post(t, "alice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"calc","arguments":`+arguments+`,`+meta+`}}`,
		"Key", key, "Mcp-Protocol-Version", newer, "Mcp-Method", "tools/call", "Mcp-Name", "calc")
	return body
}

// An answer that a host sends again, after its turn has gone on, is the same answer; another text
// under its key is refused.
func TestAnswerComesAgain(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"by the question": `{"task_id":"T","message":"yes","question_id":"q"}`,
		"the only one":    `{"task_id":"T","message":"yes"}`,
	} {
		h := newHost(t, mcp.Options{}, func(ctx context.Context, turn *gatewaytest.Turn) gateway.Answer {
			given, _, _ := turn.Question(ctx, gateway.Question{ID: "q", Call: "c", Text: "Sure?"})
			return gateway.Answer{Body: "so " + given}
		})
		h.forward(t, false, nil)
		h.keyedCall(t, "k1", `{"task_id":"T","message":"go"}`)
		first := h.keyedCall(t, "k2", answer)
		if !strings.Contains(first, "so yes") {
			t.Errorf("%s: the answer has %s", name, first)
		}
		if again := h.keyedCall(t, "k2", answer); again != first {
			t.Errorf("%s: again it has %s, want %s", name, again, first)
		}
		if other := h.keyedCall(t, "k2", strings.Replace(answer, "yes", "no", 1)); !strings.Contains(other, "another message has the id") {
			t.Errorf("%s: another answer under its key has %s", name, other)
		}
		if list, err := h.List(t.Context(), gatewaytest.User("a", "alice"), "", 9); err != nil || len(list) != 1 {
			t.Errorf("%s: the agent got %d messages, %v", name, len(list), err)
		}
	}
}

// A message that a host sends again is no answer to what its own turn asks.
func TestMessageComesAgain(t *testing.T) {
	t.Parallel()
	h := newHost(t, mcp.Options{}, asks)
	h.forward(t, false, nil)
	const deletes = `{"task_id":"T","message":"delete"}`
	for range 2 {
		if got := h.keyedCall(t, "k1", deletes); !strings.Contains(got, "Who?") {
			t.Errorf("it has %s", got)
		}
	}
}

// A request from another host that ends withdraws its message only where its caller has left: the
// host that has sent it may have stopped.
func TestHopEnds(t *testing.T) {
	t.Parallel()
	for cause, want := range map[error]gateway.Outcome{context.Canceled: gateway.Done, swarm.ErrCallerLeft: gateway.Cancelled} {
		begun, goOn := make(chan struct{}), make(chan struct{})
		h := newHost(t, mcp.Options{}, func(context.Context, *gatewaytest.Turn) gateway.Answer {
			close(begun)
			<-goOn
			return gateway.Answer{Body: "done"}
		})
		end, ended := make(chan error), make(chan struct{})
		h.forward(t, true, end)
		go func() {
			defer close(ended)
			h.keyedCall(t, "k1", `{"message":"go"}`)
		}()
		<-begun
		end <- cause
		<-ended
		close(goOn)
		alice := gatewaytest.User("a", "alice")
		x, err := h.Find(t.Context(), alice, "k1")
		if err != nil {
			t.Fatal(err)
		}
		if a, err := h.Wait(t.Context(), x); err != nil || a.Outcome != want {
			t.Errorf("%v: the message has %+v, %v, want %s", cause, a, err, want)
		}
	}
}

// An answer to so many questions that its note cannot have them comes again as it is: it only waits.
func TestAnswerToManyComesAgain(t *testing.T) {
	t.Parallel()
	const many = 100
	h := newHost(t, mcp.Options{}, func(ctx context.Context, turn *gatewaytest.Turn) gateway.Answer {
		var all sync.WaitGroup
		for n := range many {
			id := fmt.Sprintf("question-of-a-usual-length-%03d", n)
			all.Go(func() { _, _, _ = turn.Question(ctx, gateway.Question{ID: id, Call: id, Text: "Sure?"}) })
		}
		all.Wait()
		return gateway.Answer{Body: "done"}
	})
	h.forward(t, false, nil)
	answers := map[string]string{}
	for n := range many {
		answers[fmt.Sprintf("question-of-a-usual-length-%03d", n)] = "yes"
	}
	text, err := json.Marshal(answers)
	if err != nil {
		t.Fatal(err)
	}
	arguments, err := json.Marshal(map[string]string{"task_id": "T", "message": string(text)})
	if err != nil {
		t.Fatal(err)
	}
	for got := h.keyedCall(t, "k1", `{"task_id":"T","message":"go"}`); strings.Count(got, "Sure?") < 2*many; {
		got = h.keyedCall(t, "", `{"task_id":"T"}`)
	}
	for range 2 {
		if got := h.keyedCall(t, "k2", string(arguments)); !strings.Contains(got, `"status":"done"`) {
			t.Fatalf("it has %s", got)
		}
	}
}

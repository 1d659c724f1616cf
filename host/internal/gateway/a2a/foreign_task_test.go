package a2a_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/a2a"
	"skep/host/internal/gateway/state"
	"skep/spec/mail"
)

// newTalker is a foreign agent that streams the results that a test wants, whatever it is
// asked.
func newTalker(t *testing.T, tell func(result func(string))) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	mux.HandleFunc("GET "+a2asrv.WellKnownAgentCardPath, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(&sdk.AgentCard{
			Name: "talker", Description: "talks", Version: "1", Capabilities: sdk.AgentCapabilities{Streaming: true},
			SupportedInterfaces: []*sdk.AgentInterface{sdk.NewAgentInterface(s.URL+"/agent", sdk.TransportProtocolJSONRPC)},
		})
	})
	mux.HandleFunc("/agent", func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			ID json.RawMessage `json:"id"`
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		tell(func(result string) {
			_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", req.ID, result)
		})
	})
	return s
}

// writes counts the records that are written.
type writes struct {
	*recorder
	n atomic.Int64
}

func (w *writes) State() state.Store { return countedState{w.recorder.State(), &w.n} }

type countedState struct {
	state.Store
	n *atomic.Int64
}

func (s countedState) Put(ctx context.Context, r state.Record) (int64, error) {
	s.n.Add(1)
	return s.Store.Put(ctx, r)
}

// TestTalkativePartner: what a foreign agent tells within one attempt is bounded: the ids
// that are stored, the artifacts, and the size with all that is in parts.
func TestTalkativePartner(t *testing.T) {
	t.Parallel()
	update := func(task, context string) string {
		return fmt.Sprintf(`{"statusUpdate":{"taskId":%q,"contextId":%q,"status":{"state":"TASK_STATE_WORKING"}}}`, task, context)
	}
	artifact := func(id, parts string, more bool) string {
		return fmt.Sprintf(`{"artifactUpdate":{"taskId":"t","contextId":"c","append":%v,"artifact":{"artifactId":%q,"parts":[%s]}}}`, more, id, parts)
	}
	empty := strings.TrimSuffix(strings.Repeat(`{"text":""},`, 300), ",")
	for name, c := range map[string]struct {
		tell func(result func(string))
		want string
	}{
		"ids of tasks": {func(result func(string)) {
			for i := range 1000 {
				result(update(fmt.Sprint("t", i), "c"))
			}
		}, "another id each time"},
		"ids of contexts": {func(result func(string)) {
			for i := range 1000 {
				result(update("t", fmt.Sprint("c", i)))
			}
		}, "another id each time"},
		"artifacts": {func(result func(string)) {
			for i := range 1001 {
				result(artifact(fmt.Sprint("a", i), ``, false))
			}
		}, "more than 1000 artifacts"},
		"empty parts": {func(result func(string)) {
			for range 5 {
				result(artifact("a", empty, true))
			}
		}, "more than 65536 bytes"},
		"data": {func(result func(string)) {
			for i := range 20 {
				result(artifact("a", fmt.Sprintf(`{"data":{"x":%q}}`, strings.Repeat("y", 4<<10)), i > 0))
			}
		}, "more than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, _, p := newCarrier(t, newTalker(t, c.tell).URL)
			w := &writes{recorder: o}
			g := a2a.New(a2a.Options{Runtime: w})
			g.LimitAnswer(64 << 10)
			wantState(t, g.Carry(t.Context(), p, delivery("m1", mail.Request, "tea")), gateway.Refused, c.want)
			if n := w.n.Load(); n > 3 {
				t.Errorf("%d records were written", n)
			}
		})
	}
}

// TestPiecesAreOneText: an artifact that came in pieces is one text, and a piece that
// replaces it takes its place.
func TestPiecesAreOneText(t *testing.T) {
	t.Parallel()
	s := newTalker(t, func(result func(string)) {
		piece := func(text string, more bool) {
			result(fmt.Sprintf(`{"artifactUpdate":{"taskId":"t","contextId":"c","append":%v,"artifact":{"artifactId":"a","parts":[{"text":%q}]}}}`, more, text))
		}
		piece("gone", false)
		piece("one ", false)
		piece("two ", true)
		piece("three", true)
		result(`{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}`)
	})
	o, g, p := newCarrier(t, s.URL)
	wantState(t, g.Carry(t.Context(), p, delivery("m1", mail.Request, "tea")), gateway.Taken, "")
	if asked := o.take(); len(asked) != 1 || asked[0].Body != "one two three" {
		t.Errorf("brought %+v", asked)
	}
}

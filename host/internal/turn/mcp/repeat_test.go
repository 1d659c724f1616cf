package mcp_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"skep/host/internal/turn/mcp"
)

// flaky is a server of one tool that fails as often as it has failures, and counts its calls by
// their ids.
type flaky struct {
	declares bool
	// opening and calling fail requests that open a session, and calls; in their order.
	opening, calling []string

	mu  sync.Mutex
	ids []string
}

// fail fails a request as the first of some failures says, and reports whether it had one.
func (f *flaky) fail(w http.ResponseWriter, all *[]string, id string) bool {
	f.mu.Lock()
	if len(*all) == 0 {
		f.mu.Unlock()
		return false
	}
	how := (*all)[0]
	*all = (*all)[1:]
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch how {
	case "cut":
		panic(http.ErrAbortHandler)
	case "half":
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "{")
		panic(http.ErrAbortHandler)
	case "busy":
		http.Error(w, "come again", http.StatusServiceUnavailable)
	case "proxy":
		http.Error(w, "nothing is behind me", http.StatusBadGateway)
	case "forgotten":
		http.Error(w, "no such session", http.StatusNotFound)
	case "stops":
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"the call was cut off","data":{"skep/again":true}}}`, id)
	case "full":
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"isError":true,"_meta":{"skep/again":true},"content":[{"type":"text","text":"too many"}]}}`, id)
	case "refuses":
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"not you"}}`, id)
	}
	return true
}

// ServeHTTP implements [http.Handler].
func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, rest, _ := bytes.Cut(body, []byte(`"id":`))
	id, _, _ := bytes.Cut(rest, []byte(","))
	answer := func(result string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
	}
	switch {
	case bytes.Contains(body, []byte(`"initialize"`)):
		if f.fail(w, &f.opening, string(id)) {
			return
		}
		declared := ""
		if f.declares {
			declared = `,"experimental":{"skep/id":{}}`
		}
		w.Header().Set("Mcp-Session-Id", "s")
		answer(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}` + declared + `},"serverInfo":{"name":"x","version":"1"}}`)
	case bytes.Contains(body, []byte(`"tools/list"`)):
		if !f.fail(w, &f.opening, string(id)) {
			answer(`{"tools":[` + echoTool + `]}`)
		}
	case bytes.Contains(body, []byte(`"tools/call"`)):
		_, rest, _ := bytes.Cut(body, []byte(`"skep/id":"`))
		key, _, _ := bytes.Cut(rest, []byte(`"`))
		f.mu.Lock()
		f.ids = append(f.ids, string(key))
		f.mu.Unlock()
		if !f.fail(w, &f.calling, string(id)) {
			answer(`{"content":[{"type":"text","text":"ok"}]}`)
		}
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// TestRepeats: a call whose answer is lost is made again, under its id, where the file or the
// server's declaration allows it, and never else. A call that the server has not taken is made again
// anyway, and what a server says for certain is not.
func TestRepeats(t *testing.T) {
	t.Parallel()
	const once = "no answer came, and the call may have been carried out"
	byID := mcp.Call{RepeatableByID: true, Wait: true}
	for name, c := range map[string]struct {
		*flaky
		call  mcp.Call
		want  string // of the result
		calls int
	}{
		"declared":              {&flaky{declares: true, calling: []string{"cut"}}, byID, `"ok"`, 2},
		"declared, half":        {&flaky{declares: true, calling: []string{"half", "half"}}, byID, `"ok"`, 3},
		"declared, restarted":   {&flaky{declares: true, calling: []string{"cut", "forgotten"}}, byID, `"ok"`, 3},
		"declared, many":        {&flaky{declares: true, calling: []string{"cut", "half", "forgotten", "proxy", "busy"}}, byID, `"ok"`, 6},
		"declared, stops":       {&flaky{declares: true, calling: []string{"stops", "forgotten"}}, byID, `"ok"`, 3},
		"declared, full":        {&flaky{declares: true, calling: []string{"full", "full"}}, byID, `"ok"`, 3},
		"declared, refuses":     {&flaky{declares: true, calling: []string{"refuses"}}, byID, "UPSTREAM", 1},
		"declared, in doubt":    {&flaky{declares: true}, mcp.Call{RepeatableByID: true, InDoubt: true}, `"ok"`, 1},
		"declared, forbidden":   {&flaky{declares: true, calling: []string{"cut"}}, mcp.Call{Wait: true}, "it is not made again: no retry_in_doubt allows it", 1},
		"declared, one attempt": {&flaky{declares: true, calling: []string{"cut", "cut"}}, mcp.Call{RepeatableByID: true}, once, 2},
		"other":                 {&flaky{calling: []string{"cut"}}, byID, "the server does not declare the capability skep/id", 1},
		"other, proxy":          {&flaky{calling: []string{"proxy"}}, byID, once, 1},
		"other, stops":          {&flaky{calling: []string{"stops"}}, byID, "UPSTREAM", 1},
		"other, in doubt":       {&flaky{}, mcp.Call{RepeatableByID: true, InDoubt: true}, "may have been carried out; it is not made again", 0},
		"other, allowed":        {&flaky{calling: []string{"cut", "half"}}, mcp.Call{Repeatable: true, Wait: true}, `"ok"`, 3},
		"other, not taken":      {&flaky{calling: []string{"busy", "forgotten", "busy"}}, byID, `"ok"`, 4},
		"other, then taken":     {&flaky{calling: []string{"busy", "cut"}}, byID, once, 2},
		"cannot be opened":      {&flaky{opening: []string{"cut", "busy", "half", "proxy"}}, byID, `"ok"`, 1},
		"opened in one attempt": {&flaky{opening: []string{"cut"}}, mcp.Call{}, `UNAVAILABLE: MCP server "notes"`, 0},
		"does not list":         {&flaky{opening: []string{"refuses", "refuses"}}, byID, `UNAVAILABLE: MCP server "notes"`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := reach(t, c.flaky)
			c.call.Tenant, c.call.Tool, c.call.Pin, c.call.Meta = "default", "echo", echoPin(t), map[string]any{mcp.IDMember: "k1"}
			got := w.callAs(t.Context(), c.call, "x")
			if !strings.Contains(got, c.want) {
				t.Errorf("%s\nwant %s\n%s", got, c.want, w.log)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if all := fmt.Sprint(c.ids); all != fmt.Sprint(strings.Fields(strings.Repeat("k1 ", c.calls))) {
				t.Errorf("calls %s, want %d", all, c.calls)
			}
		})
	}
}

// A call that waits for its answer while the server says to another call that it does not know the
// session may have been carried out: it is not made again.
func TestSessionLostBesideCall(t *testing.T) {
	t.Parallel()
	var slow, quick atomic.Int32
	taken := make(chan struct{})
	f := &flaky{}
	w := reach(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch {
		case bytes.Contains(body, []byte(`"slow"`)) && slow.Add(1) == 1:
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			close(taken)
			<-r.Context().Done()
		case bytes.Contains(body, []byte(`"quick"`)) && quick.Add(1) == 1:
			http.Error(w, "no such session", http.StatusNotFound)
		default:
			f.ServeHTTP(w, r)
		}
	}))
	call := mcp.Call{Tenant: "default", Tool: "echo", Pin: echoPin(t), RepeatableByID: true, Wait: true}
	answer := make(chan string)
	go func() { answer <- w.callAs(t.Context(), call, "slow") }()
	<-taken
	if got := w.callAs(t.Context(), call, "quick"); got != `"ok"` || quick.Load() != 2 {
		t.Errorf("the call that the server has not taken: %s after %d attempts", got, quick.Load())
	}
	if got := <-answer; !strings.Contains(got, "the call may have been carried out") || slow.Load() != 1 {
		t.Errorf("the call that it has taken: %s after %d attempts\n%s", got, slow.Load(), w.log)
	}
}

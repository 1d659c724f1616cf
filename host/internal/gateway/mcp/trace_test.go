package mcp_test

import (
	"context"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/mcp"
)

// TestTrace: the agent's turn has the trace of the call's _meta, else the one of the HTTP
// request.
func TestTrace(t *testing.T) {
	t.Parallel()
	const a, b = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
	for name, c := range map[string]struct{ meta, header, want string }{
		"in _meta":       {`{"traceparent":"` + a + `","tracestate":"rojo=1"}`, "", a + " rojo=1"},
		"in the header":  {`{}`, b, b},
		"in both":        {`{"traceparent":"` + a + `"}`, b, a},
		"malformed":      {`{"traceparent":"x"}`, b, b},
		"not a text":     {`{"traceparent":7}`, "", ""},
		"a state alone":  {`{"tracestate":"rojo=1"}`, "", ""},
		"a bad state":    {`{"traceparent":"` + a + `","tracestate":"="}`, "", a},
		"of a later one": {`{"traceparent":"cc` + a[2:] + `-more"}`, "", a},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := make(chan string, 1)
			h := newHost(t, mcp.Options{}, func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
				text, _ := turn.Ask.Trace.MarshalText()
				seen <- string(text)
				return gateway.Answer{Body: "done"}
			})
			header := []string{"Mcp-Session-Id", h.initialize(t, "alice")}
			if c.header != "" {
				header = append(header, "Traceparent", c.header)
			}
			if status, _, body := h.post(t, "alice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"calc","arguments":{"message":"hi"},"_meta":`+c.meta+`}}`, header...); status != 200 {
				t.Fatalf("%d %s", status, body)
			}
			if got := <-seen; got != c.want {
				t.Errorf("the trace is %q, want %q", got, c.want)
			}
		})
	}
}

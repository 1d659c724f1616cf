package mcp_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/mcp"
)

// TestDeclaresRepeats: the gateway declares that it finds repeats by skep/id. A call that its
// session's end cuts off may be made again, and has the first one's answer in another session.
func TestDeclaresRepeats(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}, 2), make(chan struct{})
	h := newHost(t, mcp.Options{}, func(context.Context, *gatewaytest.Turn) gateway.Answer {
		begun <- struct{}{}
		<-end
		return gateway.Answer{Body: "done"}
	})
	for _, version := range []string{older, newer} {
		s := h.connect(t, "alice", "/mcp", version, nil)
		if _, declared := s.InitializeResult().Capabilities.Experimental["skep/id"]; !declared {
			t.Errorf("%s: it declares %+v", version, s.InitializeResult().Capabilities)
		}
	}
	const body = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"calc","arguments":{"message":"x"},"_meta":{"skep/id":"k1"}}}`
	id, cut := h.initialize(t, "alice"), make(chan string)
	go func() {
		_, _, got := h.post(t, "alice", body, "Mcp-Session-Id", id)
		cut <- got
	}()
	<-begun
	if status, _, _ := h.send(t, http.MethodDelete, "alice", "", "Mcp-Session-Id", id); status != http.StatusNoContent {
		t.Errorf("the session's end: %d", status)
	}
	if got := <-cut; got != "" && !strings.Contains(got, `"data":{"skep/again":true}`) { // the SDK has closed its stream, or not yet
		t.Errorf("the call that was cut off: %s", got)
	}
	close(end)
	if _, _, got := h.post(t, "alice", body, "Mcp-Session-Id", h.initialize(t, "alice")); !strings.Contains(got, `"status":"done"`) || len(begun) > 0 {
		t.Errorf("the repeat, with %d turns more: %s", len(begun), got)
	}
}

package mcp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/mcp"
)

// BenchmarkCall is what the gateway adds to a message: everything but the network, the
// runtime and the agent.
func BenchmarkCall(b *testing.B) {
	rt := gatewaytest.New()
	defer rt.Close()
	rt.Admit("alice", gatewaytest.User("a", "alice"))
	rt.Expose("a", gateway.ExposedAgent{Swarm: "s", Name: "calc", Entrypoint: true}, gatewaytest.Echo)
	g := mcp.New(rt, mcp.Options{})
	send := func(body string, header map[string]string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "http://host/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Authorization", "Bearer alice")
		for name, value := range header {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatal(w.Code, w.Body)
		}
		return w
	}
	id := send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+older+`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, nil).Header().Get("Mcp-Session-Id")
	const call = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"calc","arguments":{"message":"x"}%s}}`
	b.Run("session", func(b *testing.B) {
		for i := range b.N {
			send(fmt.Sprintf(call, i+1+b.N, ""), map[string]string{"Mcp-Session-Id": id, "Mcp-Protocol-Version": older})
		}
	})
	b.Run("stateless", func(b *testing.B) {
		meta := `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + newer + `","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}`
		for i := range b.N {
			send(fmt.Sprintf(call, i, meta), map[string]string{"Mcp-Protocol-Version": newer, "Mcp-Method": "tools/call", "Mcp-Name": "calc"})
		}
	})
}

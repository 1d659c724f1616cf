package mcp_test

import (
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/mcp"
)

// statelessCall is a call of a tool without a session.
func (h *host) statelessCall(t *testing.T, token, tool, members string) string {
	t.Helper()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + newer + `","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}`
	_, _, body := h.post(t, token, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`",`+members+`,`+meta+`}}`,
		"Mcp-Protocol-Version", newer, "Mcp-Method", "tools/call", "Mcp-Name", tool)
	return body
}

// Each call of a tool has a line in the log of messages, and each answer to a question: also
// what is refused before the agent gets it, and a call that only waits.
func TestCallsAreRecorded(t *testing.T) {
	t.Parallel()
	h := newHost(t, mcp.Options{}, asks)
	h.statelessCall(t, "alice", "calc", `"arguments":{"message":"1","_":1}`)
	h.statelessCall(t, "alice", "calc", `"arguments":{}`)
	h.statelessCall(t, "alice", "none", `"arguments":{"message":"1"}`)
	h.statelessCall(t, "alice", "calc", `"arguments":{"task_id":"no task"}`)
	h.statelessCall(t, "alice", "calc", `"requestState":"no message","arguments":{}`)
	h.statelessCall(t, "alice", "calc", `"arguments":{"message":"1","task_id":"T"}`)
	h.statelessCall(t, "alice", "calc", `"arguments":{"task_id":"T"}`)
	h.statelessCall(t, "alice", "calc", `"arguments":{"message":"eve","task_id":"T"}`)
	want := "refused refused refused refused refused accepted accepted accepted"
	var got []string
	for _, e := range h.Events() {
		got = append(got, e.Verdict)
		if e.Type != "tools/call" || len(e.Text) == 0 || e.Verdict == "refused" && e.Reason == "" {
			t.Errorf("%+v", e)
		}
	}
	if strings.Join(got, " ") != want {
		t.Errorf("the log has %q, want %q", got, want)
	}
}

// A message at the address of a swarm that its caller does not see is refused with a line.
func TestUnknownSwarmIsRecorded(t *testing.T) {
	t.Parallel()
	h := newHost(t, mcp.Options{}, asks)
	h.path = "/none"
	status, _, _ := h.post(t, "alice", list)
	if got := h.Events(); status != http.StatusNotFound || len(got) != 1 || got[0].Verdict != "refused" {
		t.Errorf("%d, the log has %+v", status, got)
	}
}

// The state of a call is of the tool that was called: with another tool, and after a reload
// has hidden its own, it is unknown.
func TestStateOfAnotherTool(t *testing.T) {
	t.Parallel()
	h := newHost(t, mcp.Options{}, asks)
	h.Expose("a", gateway.ExposedAgent{Swarm: "s", Name: "other", Entrypoint: true}, gatewaytest.Echo)
	h.statelessCall(t, "alice", "calc", `"arguments":{"message":"1"}`)
	state := h.Events()[0].Foreign
	if got := h.statelessCall(t, "alice", "calc", `"requestState":"`+state+`","arguments":{}`); !strings.Contains(got, "Who?") {
		t.Fatalf("the call goes on with %s", got)
	}
	wrong := h.statelessCall(t, "alice", "other", `"requestState":"no message","arguments":{}`)
	if got := h.statelessCall(t, "alice", "other", `"requestState":"`+state+`","arguments":{}`); strings.ReplaceAll(got, state, "no message") != wrong {
		t.Errorf("another tool has %s, want %s", got, wrong)
	}
	h.Hide("a", "s", "calc")
	if got := h.statelessCall(t, "alice", "other", `"requestState":"`+state+`","arguments":{}`); strings.Contains(got, "Who?") {
		t.Errorf("a hidden agent asks %s", got)
	}
}

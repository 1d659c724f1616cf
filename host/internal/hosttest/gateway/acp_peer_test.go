package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/acp/acptest/peers"
	"skep/host/internal/hosttest"
)

// newACPPeer starts a host with the partner shop, and an agent of shop that is a program in
// another language: over a WebSocket, or over HTTP with the program's own address in the
// partner's table.
func newACPPeer(t *testing.T, o peers.Options, more string) (*hosttest.Site, *peers.Agent) {
	t.Helper()
	operator := "[[auth.keys]]\nid = \"ops\"\nrole = \"operator\"\nkey = \"" + hosttest.OperatorKey + "\"\n"
	write := func(url string) string { return withACP(file("hive", shopOverACP(url+more)+operator)) }
	hive := hosttest.NewSite(t, write(""))
	o.Token = shopToken
	if o.URL == "ws" {
		o.URL = strings.Replace(hive.URL(), "http", "ws", 1) + "/acp/v1/ws"
		return hive, peers.Start(t, o)
	}
	o.URL = hive.URL() + "/acp/v1/messages"
	agent := peers.Start(t, o)
	hive.Write(write(fmt.Sprintf("allow_private = true\nurl = %q\n", agent.URL)))
	if _, err := hive.As(hosttest.OperatorKey).Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	return hive, agent
}

// wantAnswer fails unless a message answers a question with a text.
func wantAnswer(t *testing.T, got, question acptest.Message, kind, body string) {
	t.Helper()
	if got.Header.Type != kind || got.Header.ReplyTo != question.Header.ID || got.Header.ConversationID != question.Header.ConversationID || !strings.Contains(got.Body, body) {
		t.Errorf("got %+v, want %s %q to %s", got, kind, body, question.Header.ID)
	}
}

// TestPeerOverACP: a program that was written from the
// document alone asks our agent, is asked back by it before it has its answer, and answers a
// question of ours, over a WebSocket, in HTTP replies, and by messages of its own.
func TestPeerOverACP(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]peers.Options{
		"websocket": {Name: "agentA", URL: "ws"}, "http": {Name: "agentA"}, "http later": {Name: "agentA", Later: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hive, agent := newACPPeer(t, o, "")
			send := func(kind, body string) acptest.Message {
				t.Helper()
				return agent.Send(t, map[string]any{"receiver": "boss", "type": kind, "body": body, "conversation_id": "conv " + kind})
			}
			question := send("REQUEST", "how many?")
			wantAnswer(t, agent.Receive(t), question, "RESPONSE", "how many?")
			question = send("QUERY", hosttest.RequestOf("agentA@shop", "red or blue?"))
			back := agent.Receive(t)
			if h := back.Header; h.Type != "REQUEST" || h.Sender != "boss@hive" || h.Receiver != "agentA" || h.ConversationID != "conv QUERY" || back.Body != "red or blue?" {
				t.Errorf("it is asked %+v", back)
			}
			wantAnswer(t, agent.Receive(t), question, "INFORM", "red or blue?")
			if got := asked(t, hive, "agentA@shop", "and you?"); !strings.Contains(got, "and you?") {
				t.Errorf("our agent has the answer %q", got)
			}
			agent.End(t)
		})
	}
}

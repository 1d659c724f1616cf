package gateway_test

import (
	"strings"
	"testing"

	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/hosttest"
)

// TestEraseWhileACPAsks: a partner whose tenant is erased while its questions wait
// gets an ERROR for each, over a WebSocket and over HTTP, and nothing of them is left: the same
// messages are new ones afterwards, and the connection goes on.
func TestEraseWhileACPAsks(t *testing.T) {
	t.Parallel()
	operator := "[[auth.keys]]\nid = \"ops\"\nrole = \"operator\"\nkey = \"" + hosttest.OperatorKey + "\"\n"
	hive := hosttest.NewSite(t, withACP(file("hive", shopOverACP("")+operator)))
	web := acptest.Client{URL: hive.URL() + "/acp/v1/messages", Token: shopToken}
	socket, err := acptest.Dial(t.Context(), hive.URL(), shopToken)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(socket.Close)
	waits := hosttest.RequestOf("agentB@shop", "nobody answers")
	first, second := acptest.New("REQUEST", "agentA", "boss", waits), acptest.New("REQUEST", "agentA", "boss", waits)
	first.Header.ConversationID, second.Header.ConversationID = "first", "second"
	replied := make(chan acptest.Reply, 1)
	go func() {
		r, err := web.Send(second.Text())
		if err != nil {
			r.Text = err.Error()
		}
		replied <- r
	}()
	if err := socket.Send(t.Context(), first.Text()); err != nil {
		t.Fatal(err)
	}
	read := func() acptest.Message {
		t.Helper()
		m, err := socket.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for range 2 {
		if m := read(); m.Header.Type != "REQUEST" || m.Header.Receiver != "agentB" {
			t.Fatalf("agentB is asked %+v", m)
		}
	}
	if err := hive.As(hosttest.OperatorKey).EraseTenant(t.Context(), "default"); err != nil {
		t.Fatal(err)
	}
	if m := read(); m.Header.Type != "ERROR" || m.Header.ReplyTo != first.Header.ID {
		t.Errorf("over the WebSocket agentA gets %+v", m)
	}
	if r := <-replied; r.Message == nil || r.Message.Header.Type != "ERROR" || r.Message.Header.ReplyTo != second.Header.ID {
		t.Errorf("over HTTP agentA gets %d %s", r.Status, r.Text)
	}
	first.Body = hosttest.Script(hosttest.Step{"task_complete", hosttest.Args{"finish_message": "anew"}})
	if err := socket.Send(t.Context(), first.Text()); err != nil {
		t.Fatal(err)
	}
	if m := read(); m.Header.Type != "RESPONSE" || m.Header.ReplyTo != first.Header.ID || !strings.Contains(m.Body, "anew") {
		t.Errorf("after the erasure agentA gets %+v", m)
	}
}

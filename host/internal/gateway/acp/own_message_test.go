package acp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/acp/check"
)

// TestOwnMessagesAreDeclared: the gateway's own ERROR and ACKNOWLEDGE have the header
// fields that the operator demands: from the message, or from the partner's header.
func TestOwnMessagesAreDeclared(t *testing.T) {
	t.Parallel()
	declared := declare(t, "conversation_id: String?", "conversation_id: String?, x_priority: Int, x_note: String?")
	s := newSite(t, func(o *acp.Options) { o.Declarations = declared })
	s.admit("bare-token", "bare", "agent*")
	s.rt.AddPartner(gateway.Partner{
		Name: "acme", Tenant: "default", IDs: []string{"agent*"}, May: gateway.Rights{gateway.MayAsk, gateway.MayTell},
		Options: map[string]any{"header": ownFields{"x_priority": json.RawMessage("1"), "x_note": json.RawMessage(`"ours"`)}},
	})
	message := func(kind, to, fields string) string {
		return strings.Replace(acptest.New(kind, "agentA", to, "7").Text(), `{"header":{`, `{"header":{`+fields, 1)
	}
	for _, test := range []struct{ what, token, text, kind, priority, note string }{
		{"no such receiver", "bare-token", message("REQUEST", "none", `"x_priority":3,"x_note":"a",`), "ERROR", "3", `"a"`},
		{"no time", "bare-token", strings.Replace(message("REQUEST", "calc", `"x_priority":3,"x_note":"a",`), `"timestamp"`, `"x_timestamp"`, 1), "ERROR", "3", `"a"`},
		{"no priority", "acme-token", message("REQUEST", "calc", ""), "ERROR", "1", ""},
		{"another type", "acme-token", message("REQUEST", "calc", `"x_priority":"high","x_note":7,`), "ERROR", "1", ""},
		{"the message before the option", "acme-token", message("REQUEST", "none", `"x_priority":3,`), "ERROR", "3", ""},
		{"no JSON", "acme-token", "hello", "ERROR", "1", ""},
		{"neither", "bare-token", message("REQUEST", "calc", ""), "ERROR", "", ""},
		{"an acknowledgement", "bare-token", message("INFORM", "calc", `"x_priority":3,"x_ack":"requested",`), "ACKNOWLEDGE", "3", ""},
	} {
		socket, err := acptest.Dial(t.Context(), s.server.URL, test.token)
		if err != nil {
			t.Fatal(err)
		}
		if err := socket.Send(t.Context(), test.text); err != nil {
			t.Fatal(err)
		}
		text, err := socket.ReadText(t.Context())
		socket.Close()
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Header map[string]json.RawMessage }
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if h := got.Header; string(h["type"]) != `"`+test.kind+`"` || string(h["x_priority"]) != test.priority || string(h["x_note"]) != test.note {
			t.Errorf("%s got %s", test.what, text)
		}
		if why := check.Explain(declared.Root(), text); (why == nil) != (test.priority != "") {
			t.Errorf("%s got what does not fit: %v", test.what, why)
		}
	}
}

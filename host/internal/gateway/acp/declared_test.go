package acp_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"skep/host/internal/gateway/acp"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/acp/dsl"
)

// declare returns the declarations of ACP 1.0 with a part of them changed.
func declare(t *testing.T, old, changed string) *dsl.Schema {
	t.Helper()
	text, err := os.ReadFile("../../../../spec/gateways/acp/acp-1.0.acp")
	if err != nil {
		t.Fatal(err)
	}
	declared, err := dsl.Load("acme.acp", func(string) (string, error) { return strings.Replace(string(text), old, changed, 1), nil })
	if err != nil {
		t.Fatal(err)
	}
	return declared
}

// TestMistypedField: who mistypes a header field that an operator has declared is
// told which one it may be, where the error is about one of the two.
func TestMistypedField(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *acp.Options) {
		o.Declarations = declare(t, "conversation_id: String?", "conversation_id: String?, x_priority: Int, x_order: Int?")
	})
	for fields, want := range map[string]string{
		`"x_priorty":3`:                               `Message.header.x_priority: is missing (the message has "x_priorty"; did you mean "x_priority"?)`,
		`"unlike":3`:                                  "Message.header.x_priority: is missing",
		`"x_priority":"high","x_ordre":3`:             "Message.header.x_priority: is no whole number of 32 bits",
		`"x_priority":3,"x_priorty":3,"x_order":true`: "Message.header.x_order: is no whole number of 32 bits",
		`"x_priority":3,"x_priorty":3`:                "",
	} {
		text := strings.Replace(acptest.New("REQUEST", "agentA", "calc", "7").Text(), `{"header":{`, `{"header":{`+fields+`,`, 1)
		r := s.sendText(t, text)
		if want == "" && r.Status == http.StatusOK {
			continue
		}
		if r.Status != http.StatusBadRequest || r.Message == nil || r.Message.Body != "malformed: "+want {
			t.Errorf("%s got %d %s", fields, r.Status, r.Text)
		}
	}
}

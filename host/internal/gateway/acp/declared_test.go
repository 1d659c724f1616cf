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

// TestAllMissing: who sends a message that lacks several fields is told all of them at
// once, the operator's among them; a text that is no JSON has a place, and a member that is there
// twice a name.
func TestAllMissing(t *testing.T) {
	t.Parallel()
	declared := declare(t, "conversation_id: String?", "conversation_id: String?, x_priority: Int, x_order: Int, x_note: Int?")
	const whole = `"version":"1.0","sender":"agentA","receiver":"calc","timestamp":"2023-10-25T10:00:00Z","content_type":"text/plain"`
	const twice = "the text has a member twice: "
	texts := []struct{ text, want, own string }{
		{`{"header":{` + whole + `},"body":"b"}`, "Message.header.type: is missing, as is id", "Message.header.type: is missing, as are id, x_priority and x_order"},
		{`{"header":{"contentType":"text/plain","sender":{"id":"a"}},"body":"b"}`, "Message.header.version: is missing, as are receiver, type, id and timestamp", "Message.header.version: is missing, as are receiver, type, id, timestamp, x_priority and x_order"},
		{`{"header":{` + whole + `,"type":"QUERY"},"body":["b"]}`, "Message.header.id: is missing", "Message.header.id: is missing, as are x_priority and x_order"},
		{`{"header":{` + whole + `,"type":"QUERY","id":"1"},"body":"b"}`, "", "Message.header.x_priority: is missing, as is x_order"},
		{`{"header":{` + whole + `,"type":"QUERY","id":"2","x_prority":1},"body":"b"}`, "", `Message.header.x_priority: is missing, as is x_order (the message has "x_prority"; did you mean "x_priority"?)`},
		{"{\"header\":\n {},}", "the text is no JSON: line 2, column 5: invalid character '}' looking for beginning of object key string", ""},
		{`{"header":{"id":"1","id":"2"},"body":"b"}`, twice + `"id" in Message.header`, ""},
		{`{"header":{"id":"1","id":"2"},"body":{"a":1}}`, twice + `"id" in Message.header`, ""},
	}
	for profile, strict := range map[string]bool{"default": false, "strict": true} {
		for _, schema := range []*dsl.Schema{nil, declared} {
			s := newSite(t, func(o *acp.Options) { o.Strict, o.Declarations = strict, schema })
			for _, c := range texts {
				if strict && (strings.Contains(c.text, "contentType") || strings.Contains(c.text, `"body":["`) || strings.Contains(c.text, `"body":{`)) {
					continue // refused for its form
				}
				want := c.want
				if schema != nil && c.own != "" {
					want = c.own
				}
				r := s.sendText(t, c.text)
				if want == "" && r.Status == http.StatusOK {
					continue
				}
				if r.Status != http.StatusBadRequest || r.Message == nil || faultOf(t, r).Message != want {
					t.Errorf("%s, %s: %d %s, want %s", profile, c.text, r.Status, r.Text, want)
				}
			}
		}
	}
}

package acp

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"skep/host/internal/gateway"
)

// V-A01, V-A02, V-A08, V-A09, V-A10: each example of the document is taken in
// the profile default, as its declarations have it and as its program would write it, and
// means the same. Strict takes the declared form alone.
func TestExamples(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../../spec/gateways/acp/examples.json")
	if err != nil {
		t.Fatal(err)
	}
	var examples []struct {
		Lines, Form string
		Message     json.RawMessage
	}
	if err := json.Unmarshal(raw, &examples); err != nil {
		t.Fatal(err)
	}
	loose, strict := reader{depth: maxDepth}, reader{depth: maxDepth, strict: true}
	first := map[string]string{}
	for _, e := range examples {
		in, err := loose.read(e.Message)
		if err != nil {
			t.Errorf("lines %s, %s: %v", e.Lines, e.Form, err)
			continue
		}
		var body map[string]any
		if err := json.Unmarshal([]byte(in.Body), &body); err != nil {
			t.Errorf("lines %s, %s: the body is %q: %v", e.Lines, e.Form, in.Body, err)
		}
		in.Body = ""
		text, err := in.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		meaning := fmt.Sprintf("%s %v", text, body)
		if first[e.Lines] == "" {
			first[e.Lines] = meaning
		}
		if meaning != first[e.Lines] {
			t.Errorf("lines %s, %s: %s, want %s", e.Lines, e.Form, meaning, first[e.Lines])
		}
		if _, err := strict.read(e.Message); (err == nil) != (e.Form == "declared") {
			t.Errorf("lines %s, %s, strict: %v", e.Lines, e.Form, err)
		}
	}
	if len(first) != 2 || len(examples) != 6 {
		t.Errorf("%d examples of %d messages", len(examples), len(first))
	}
}

// FuzzRead: a text that is taken in the profile strict is taken in default as the same;
// what is taken is written and read again as the same, and every refusal can be sent.
func FuzzRead(f *testing.F) {
	const text = `{"header":{"version":"1.0","sender":"agentA","receiver":"calc","type":"REQUEST","id":"msg123","timestamp":"2023-10-25T10:00:00Z","content_type":"application/json","reply_to":"m","conversation_id":"conv456","x_trace":{"a":[1.50]}},"body":"{}"}`
	for _, change := range [][2]string{
		{"", ""}, {"content_type", "contentType"}, {"reply_to", "replyTo"}, {`"agentA"`, `{"id":"agentA"}`}, {`"2023-10-25T10:00:00Z"`, `{"time":"2023-10-25T10:00Z"}`},
		{`"{}"`, `{"a":[1]}`}, {"REQUEST", "ERROR"}, {"msg123", "\xff"}, {"{}", `\u0000`}, {`"body"`, `"bodi"`},
	} {
		f.Add(strings.Replace(text, change[0], change[1], 1))
	}
	loose, strict := reader{depth: maxDepth}, reader{depth: maxDepth, strict: true}
	c, g := gateway.Caller{Realm: "acme"}, &Gateway{}
	f.Fuzz(func(t *testing.T, text string) {
		in, err := loose.read([]byte(text))
		if narrow, strictErr := strict.read([]byte(text)); strictErr == nil && (err != nil || string(narrow.text) != string(in.text)) {
			t.Fatalf("strict takes %q as %s, and default as %s, %v", text, narrow.text, in.text, err)
		}
		if err != nil {
			if _, err := g.refusal(c, in.Header, g.faultOf(err)).MarshalJSON(); err != nil {
				t.Fatalf("the refusal of %q cannot be written: %v", text, err)
			}
			return
		}
		again, err := loose.read(in.text)
		if err != nil || string(again.text) != string(in.text) {
			t.Fatalf("%q became %s and then %s, %v", text, in.text, again.text, err)
		}
		a, err := askOf(in)
		if err != nil || a.Subject == "" {
			t.Fatalf("%q is %+v, %v", text, a, err)
		}
		for _, outcome := range []gateway.Outcome{gateway.Done, gateway.Failed} {
			x := gateway.Exchange{ID: a.ID, Note: a.Note}
			m, err := answerTo(c, x, gateway.Answer{Outcome: outcome, Body: in.Body})
			if err == nil {
				_, err = m.MarshalJSON()
			}
			if err != nil {
				t.Fatalf("the answer to %q cannot be written: %v", text, err)
			}
		}
	})
}

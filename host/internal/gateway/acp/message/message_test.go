package message

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"skep/host/internal/gateway/acp/dsl"
	"skep/host/internal/gateway/acp/gen"
)

// the files here are what the declarations become.
func TestGenerated(t *testing.T) {
	t.Parallel()
	s, err := dsl.Load("acp-1.0.acp", func(name string) (string, error) {
		text, err := os.ReadFile("../../../../../spec/gateways/acp/" + name)
		return string(text), err
	})
	if err != nil {
		t.Fatal(err)
	}
	files, err := gen.Generate("go", s, gen.Options{Package: "message"})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if text, err := os.ReadFile(f.Name); err != nil || string(text) != f.Text {
			t.Errorf("%s is not what the declarations become: run go generate here; %v", f.Name, err)
		}
	}
}

// which answer each type expects, and what it has from what it answers.
func TestExpects(t *testing.T) {
	t.Parallel()
	for typ, want := range map[MessageType]string{
		MessageTypeRequest: "RESPONSE reply_to conversation_id", MessageTypeQuery: "INFORM reply_to conversation_id",
		MessageTypeResponse: "", MessageTypeInform: "", MessageTypeAcknowledge: "", MessageTypeError: "",
	} {
		answer, carries := typ.Expects()
		if got := strings.TrimSpace(string(answer) + " " + strings.Join(carries, " ")); got != want {
			t.Errorf("%s expects %q, want %q", typ, got, want)
		}
	}
}

// a member of the header that is not declared is kept and written again; an
// error leaves a message as it was.
func TestMessage(t *testing.T) {
	t.Parallel()
	text := `{"header":{"version":"1.0","sender":"agentA","receiver":"agentB","type":"QUERY","id":"1","timestamp":"2023-10-25T10:00:00Z","content_type":"text/plain","conversation_id":"c","x_trace":{"a":[1.50]}},"body":"é"}`
	var m Message
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.Header.Type != MessageTypeQuery || m.Header.ReplyTo != nil || string(m.Header.Extra["x_trace"]) != `{"a":[1.50]}` {
		t.Fatalf("%+v, %v", m, err)
	}
	if out, err := json.Marshal(m); err != nil || string(out) != text {
		t.Errorf("%s, %v", out, err)
	}
	if err := m.UnmarshalJSON([]byte(`{"header":{},"body":""}`)); err == nil || err.Error() != "Message.header.version: is missing" || m.Body != "é" {
		t.Errorf("%+v, %v", m, err)
	}
	m.Header.Type = "PROPOSE"
	if err := m.Validate(); err == nil || !strings.HasPrefix(err.Error(), "Message.header.type: is none of REQUEST") {
		t.Error(err)
	}
}

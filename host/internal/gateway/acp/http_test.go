package acp_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/swarm"
)

// document is the REQUEST of the document's example, as its own program would write it.
const document = `{"header":{"version":"1.0","sender":"agentA","receiver":"calc","type":"REQUEST","id":"msg123","timestamp":"2023-10-25T10:00:00Z","content_type":"application/json","conversation_id":"conv456"},"body":"{\"action\": \"doSomething\", \"params\": {\"param1\": \"value1\"}}"}`

// V-A01, V-A02, A-006, A-009, A-010, A-020: the document's REQUEST gets one RESPONSE that is linked to it. A
// repeat gets the same bytes, and no other turn (V-A13).
func TestRequest(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	seen := s.exposeAsks("calc")
	first := s.sendText(t, document)
	m := first.Message
	if first.Status != http.StatusOK || m == nil {
		t.Fatalf("got %d %s", first.Status, first.Text)
	}
	want := acptest.Header{
		Version: "1.0", Sender: "calc", Receiver: "agentA", Type: "RESPONSE", ID: m.Header.ID, Timestamp: m.Header.Timestamp,
		ContentType: "application/json", ReplyTo: "msg123", ConversationID: "conv456",
	}
	if m.Header != want || m.Body != `{"action": "doSomething", "params": {"param1": "value1"}}` {
		t.Errorf("answer %s", first.Text)
	}
	if again := s.sendText(t, document); again.Text != first.Text {
		t.Errorf("the repeat got %s, not %s", again.Text, first.Text)
	}
	if len(seen) != 1 {
		t.Errorf("%d turns", len(seen))
	}
	if a := <-seen; a.From != "agentA" || a.Conversation != "conv456" || a.Subject != "REQUEST: doSomething" || a.Info["type"] != "REQUEST" || a.Info["expects"] != "RESPONSE" {
		t.Errorf("the agent saw %+v", a)
	}
	other := strings.Replace(document, "value1", "value2", 1)
	if r := s.sendText(t, other); r.Status != http.StatusConflict || code(t, r) != "duplicate" {
		t.Errorf("another message under the id got %d %s", r.Status, r.Text)
	}
}

// The trace of a message is its own, or its request's; what is malformed is none,
// and a repeat may have another.
func TestTrace(t *testing.T) {
	t.Parallel()
	const a, b = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
	s := newSite(t, nil)
	seen := s.exposeAsks("calc")
	with := func(id, fields string) string {
		return strings.NewReplacer(`"msg123"`, `"`+id+`"`, `"conversation_id"`, fields+`"conversation_id"`).Replace(document)
	}
	own := `"x_traceparent":"` + a + `","x_tracestate":"rojo=1",`
	for id, c := range map[string]struct {
		fields string
		header []string
		want   swarm.Trace
	}{
		"own":       {own, []string{"traceparent", b, "tracestate", "rojo=2"}, swarm.ParseTrace(a, "rojo=1")},
		"requests":  {"", []string{"traceparent", b, "tracestate", "rojo=2"}, swarm.ParseTrace(b, "rojo=2")},
		"malformed": {`"x_traceparent":"` + a + `\r\nX-Y: z",`, nil, swarm.Trace{}},
	} {
		if r := s.sendText(t, with(id, c.fields), c.header...); r.Status != http.StatusOK {
			t.Fatalf("%s: %d %s", id, r.Status, r.Text)
		}
		if got := (<-seen).Trace; got != c.want {
			t.Errorf("%s: the trace is %q, want %q", id, got, c.want)
		}
	}
	if r := s.sendText(t, with("own", strings.Replace(own, "rojo=1", "rojo=3", 1))); r.Status != http.StatusOK || len(seen) != 0 {
		t.Errorf("a repeat with another trace: %d %s, %d more turns", r.Status, r.Text, len(seen))
	}
}

// code is the code in an ERROR that answers a message.
func code(t *testing.T, r acptest.Reply) string {
	t.Helper()
	return faultOf(t, r).Code
}

// faultOf is the ERROR that answers a message.
func faultOf(t *testing.T, r acptest.Reply) (f acptest.Fault) {
	t.Helper()
	if r.Message == nil {
		t.Errorf("no ERROR but %d %q", r.Status, r.Text)
		return f
	}
	f, err := acptest.ParseFault(*r.Message)
	if err != nil {
		t.Error(err)
	}
	return f
}

// V-A03, V-A05, V-A18: who gets which answer. What answers or only tells gets
// none, an ERROR least of all: a refusal is a plain text.
func TestAnswers(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for kind, want := range map[string]string{"REQUEST": "RESPONSE", "QUERY": "INFORM", "RESPONSE": "", "INFORM": "", "ACKNOWLEDGE": "", "ERROR": ""} {
		for receiver, failure := range map[string]string{"calc": "", "fails": "internal", "late": "timeout", "nobody": "unknown_receiver"} {
			q := acptest.New(kind, "agentA", receiver, "7")
			r := s.send(t, q)
			switch {
			case want == "" && receiver == "nobody" && kind != "ACKNOWLEDGE":
				if r.Status != http.StatusNotFound || r.Text != "there is no receiver \"nobody\"\n" || r.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
					t.Errorf("%s to %s got %d %q", kind, receiver, r.Status, r.Text)
				}
			case want == "":
				if r.Text != "" || r.Status != http.StatusAccepted {
					t.Errorf("%s to %s got %d %q", kind, receiver, r.Status, r.Text)
				}
			case failure != "":
				if got := code(t, r); got != failure || r.Message.Header.ReplyTo != q.Header.ID {
					t.Errorf("%s to %s got %s", kind, receiver, r.Text)
				}
			case r.Message == nil || r.Message.Header.Type != want || r.Message.Header.ReplyTo != q.Header.ID || strings.Contains(r.Text, "conversation_id"):
				t.Errorf("%s got %d %s", kind, r.Status, r.Text)
			}
		}
	}
}

// V-A06 to V-A12, V-A19, G-043: what is no message of the protocol gets an ERROR, in the profile
// strict also what the document leaves open.
func TestUnusable(t *testing.T) {
	t.Parallel()
	loose, strict := newSite(t, nil), newSite(t, func(o *acp.Options) { o.Strict = true })
	n := 0
	edit := func(pairs ...string) string {
		n++
		return strings.NewReplacer(append(pairs, "msg123", fmt.Sprintf("m%d", n))...).Replace(document)
	}
	type one struct{ name, text, loose, strict string }
	const objectBody = `{"header":{"version":"1.0","sender":"agentA","receiver":"calc","type":"REQUEST","id":"object","timestamp":"2023-10-25T10:00:00Z","content_type":"application/json"},"body":{"a":[1.50]}}`
	cases := []one{
		{"the document's", edit(), "", ""},
		{"another type", edit("REQUEST", "PROPOSE"), "malformed", "malformed"},
		{"another version", edit(`"1.0"`, `"2.0"`), "unsupported_version", "unsupported_version"},
		{"a minor version", edit(`"1.0"`, `"1.3"`), "", ""},
		{"no version", edit(`"1.0"`, `""`), "unsupported_version", "unsupported_version"},
		{"camel case", edit("content_type", "contentType", "conversation_id", "conversationId"), "", "malformed"},
		{"one camel name", edit("conversation_id", "conversationId"), "", "malformed"},
		{"both spellings", edit(`"conversation_id"`, `"conversationId":"other","conversation_id"`), "malformed", "malformed"},
		{"both spellings alike", edit(`"conversation_id"`, `"conversationId":"conv456","conversation_id"`), "", "malformed"},
		{"wrapped ids", edit(`"agentA"`, `{"id":"agentA"}`, `"calc"`, `{"id":"calc"}`), "", "malformed"},
		{"a wrapped time", edit(`"2023-10-25T10:00:00Z"`, `{"time":"2023-10-25T10:00:00Z"}`), "", "malformed"},
		{"a wrapped type", edit(`"REQUEST"`, `{"REQUEST":{}}`), "malformed", "malformed"},
		{"null for an optional field", edit(`"conv456"`, `null`), "", ""},
		{"nanoseconds", edit("10:00:00Z", "10:00:00.123456789Z"), "", ""},
		{"an offset without colon", edit("10:00:00Z", "10:00:00+0000"), "", "malformed"},
		{"no seconds", edit("10:00:00Z", "10:00Z"), "", "malformed"},
		{"no time", edit("2023-10-25T10:00:00Z", "yesterday"), "malformed", "malformed"},
		{"a body that is no JSON", `{"header":{"version":"1.0","sender":"agentA","receiver":"calc","type":"REQUEST","id":"nojson","timestamp":"2023-10-25T10:00:00Z","content_type":"application/json"},"body":"{"}`, "", "malformed"},
		{"an object as body", objectBody, "", "malformed"},
		{"an object as text", `{"header":{"version":"1.0","sender":"agentA","receiver":"calc","type":"REQUEST","id":"object2","timestamp":"2023-10-25T10:00:00Z","content_type":"text/plain"},"body":{}}`, "malformed", "malformed"},
		{"a NUL", edit("doSomething", `do\u0000`), "malformed", "malformed"},
		{"half a surrogate", edit("doSomething", `do\ud800`), "malformed", "malformed"},
		{"a member twice", edit(`"conversation_id"`, `"id":"again","conversation_id"`), "malformed", "malformed"},
		{"a member twice where it is wrapped", edit(`"agentA"`, `{"id":"agentA","id":"agentA"}`), "malformed", "malformed"},
		{"a member of the message", edit(`,"body"`, `,"more":1,"body"`), "malformed", "malformed"},
		{"bad UTF-8", edit("doSomething", "\xff"), "malformed", "malformed"},
		{"too deep", edit(`"conversation_id"`, `"x_deep":`+strings.Repeat("[", 70)+strings.Repeat("]", 70)+`,"conversation_id"`), "malformed", "malformed"},
		{"more fields than an answer returns", edit(`"conversation_id"`, `"x_long":"`+strings.Repeat("x", gateway.MaxNote)+`","conversation_id"`), "malformed", "malformed"},
		{"more fields than are read", edit(`"conversation_id"`, `"x_list":[`+strings.Repeat("1,", 8<<10)+`1],"conversation_id"`), "malformed", "malformed"},
		{"a member twice in an object as body", strings.Replace(objectBody, `"a"`, `"a":1,"a"`, 1), "malformed", "malformed"},
		{"text after an object as body", objectBody + "x", "malformed", "malformed"},
		{"an end after an object as body", strings.TrimSuffix(objectBody, "}"), "malformed", "malformed"},
		{"no comma before an object as body", strings.Replace(objectBody, `,"body"`, ` "body"`, 1), "malformed", "malformed"},
		{"nothing", "", "malformed", "malformed"},
		{"no JSON", "hello", "malformed", "malformed"},
		{"a list", "[]", "malformed", "malformed"},
		{"no header", `{"body":""}`, "malformed", "malformed"},
		{"no body", edit(`,"body":`, `,"bodi":`), "malformed", "malformed"},
		{"a sender too long", edit("agentA", "agent"+strings.Repeat("x", 600)), "malformed", "malformed"},
		{"an id too long", strings.Replace(document, "msg123", strings.Repeat("x", 300), 1), "malformed", "malformed"},
	}
	for _, c := range cases {
		for profile, want := range map[*site]string{loose: c.loose, strict: c.strict} {
			r := profile.sendText(t, c.text)
			switch {
			case want == "" && (r.Status != http.StatusOK || r.Message == nil || r.Message.Header.Type != "RESPONSE"):
				t.Errorf("%s (strict %v): got %d %s", c.name, profile == strict, r.Status, r.Text)
			case want != "" && (code(t, r) != want || r.Status != http.StatusBadRequest):
				t.Errorf("%s (strict %v): got %d %s", c.name, profile == strict, r.Status, r.Text)
			}
		}
	}
}

// TestMissing (V-A07): each field that is not optional is demanded, and named where it is missing.
func TestMissing(t *testing.T) {
	t.Parallel()
	for profile, s := range map[string]*site{"default": newSite(t, nil), "strict": newSite(t, func(o *acp.Options) { o.Strict = true })} {
		for _, field := range []string{"header.version", "header.sender", "header.receiver", "header.type", "header.id", "header.timestamp", "header.content_type", "body", "none"} {
			var m map[string]any
			if err := json.Unmarshal([]byte(document), &m); err != nil {
				t.Fatal(err)
			}
			delete(m, field)
			delete(m["header"].(map[string]any), strings.TrimPrefix(field, "header."))
			text, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			r := s.sendText(t, string(text))
			if field == "none" && r.Status == http.StatusOK {
				continue
			}
			if r.Status != http.StatusBadRequest || code(t, r) != "malformed" || faultOf(t, r).Message != "Message."+field+": is missing" {
				t.Errorf("%s without %s: %d %s", profile, field, r.Status, r.Text)
			}
		}
	}
}

// V-A14, V-A15: a receiver that is not exposed is as unknown as one that is not there, a
// sender of others is refused, and people are told how to call.
func TestWhoAndWhom(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *acp.Options) { o.PublicURL = "https://hive.example" })
	s.admit("alone-token", "alone")
	for receiver, known := range map[string]bool{
		"calc": true, "calc@hive": true, "agent://hive.example/hive/calc": true, "agent://HIVE.example/hive/c%61lc": true,
		"hidden": false, "calc@other": false, "calc@": false, "agent://other.example/hive/calc": false, "agent://hive.example/calc": false, "agent://hive.example//calc": false,
	} {
		r := s.send(t, acptest.New("REQUEST", "agentA", receiver, "1"))
		if known != (r.Status == http.StatusOK) || !known && (code(t, r) != "unknown_receiver" || r.Status != http.StatusNotFound) {
			t.Errorf("%s: %d %s", receiver, r.Status, r.Text)
		}
		if r.Message != nil && r.Message.Header.Sender != receiver {
			t.Errorf("%s: sender %s", receiver, r.Message.Header.Sender)
		}
	}
	as := func(token string) *site {
		other := *s
		other.Token = token
		return &other
	}
	for _, c := range []struct {
		token, sender string
		status        int
	}{
		{"acme-token", "mallory", http.StatusForbidden}, {"user-token", "ann", http.StatusForbidden}, {"alone-token", "agentA", http.StatusForbidden},
		{"alone-token", "alone", http.StatusOK}, {"no-token", "agentA", http.StatusUnauthorized},
	} {
		r := as(c.token).send(t, acptest.New("REQUEST", c.sender, "calc", "1"))
		if r.Status != c.status || c.status == http.StatusForbidden && code(t, r) != "forbidden" {
			t.Errorf("%s as %s: %d %s", c.token, c.sender, r.Status, r.Text)
		}
	}
	for _, e := range s.rt.Events() {
		if e.Verdict == "refused" && e.Reason == "" {
			t.Errorf("no reason in %+v", e)
		}
	}
}

// TestRefusalsNameTheirReason: a refusal names the agent, the nearest one that
// its caller may see, and the setting; one of a path names what is not there.
func TestRefusalsNameTheirReason(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.admit("alone-token", "alone")
	for _, c := range []struct{ token, sender, receiver, want string }{
		{"acme-token", "agentA", "calk", `unknown_receiver: there is no receiver "calk"; did you mean "calc"?`},
		{"acme-token", "agentA", "calc@hiwe", `unknown_receiver: there is no receiver "calc@hiwe"; did you mean "calc@hive"?`},
		{"acme-token", "agentA", "hiden", `unknown_receiver: there is no receiver "hiden"`},
		{"acme-token", "mallory", "calc", `forbidden: "mallory" is not an agent of "acme", whose agents are in ids of [gateways.acp.partners.acme]`},
		{"alone-token", "agentA", "calc", `forbidden: "agentA" is not an agent of "alone", whose only agent has its name; ids of [gateways.acp.partners.alone] makes others its agents`},
	} {
		s.Token = c.token
		q := acptest.New("REQUEST", c.sender, c.receiver, "1")
		q.Header.ContentType = "text/plain"
		if r := s.send(t, q); r.Message == nil || r.Message.Body != c.want {
			t.Errorf("%s to %s: %d %s", c.sender, c.receiver, r.Status, r.Text)
		}
	}
	for _, c := range []struct {
		token, path string
		status      int
		want        string
	}{
		{"acme-token", "/acp/v1/messages/none", http.StatusNotFound, "no answer to a message \"none\" of yours is kept"},
		{"acme-token", "/acp/v1/messages/", http.StatusNotFound, "the path is not /acp/v1/messages/ID"},
		{"user-token", "/acp/v1/messages/none", http.StatusForbidden, "ACP is for agents: show a credential of role agent"},
		{"acme-token", "/acp/v1/messages", http.StatusBadRequest, "receiver is missing: give the id of the agent whose messages you read, as in ?receiver=ID"},
		{"acme-token", "/acp/v1/events?receiver=mallory", http.StatusForbidden, `"mallory" is not an agent of "acme", whose agents are in ids of [gateways.acp.partners.acme]`},
	} {
		s.Token = c.token
		if r, err := s.Get(s.server.URL + c.path); err != nil || r.Status != c.status || r.Text != c.want+"\n" {
			t.Errorf("%s: %d %q, %v", c.path, r.Status, r.Text, err)
		}
	}
}

// a caller that does not want to wait, or has waited long enough, is told where the
// answer will be. Ids that a path could not have are there, too.
func TestLater(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *acp.Options) { o.Hold = 20 * time.Millisecond })
	q := acptest.New("REQUEST", "agentA", "slow", "1")
	q.Header.ID = "a/../é ?#"
	r := s.send(t, q, "Prefer", "respond-async")
	at := r.Header.Get("Location")
	if r.Status != http.StatusAccepted || r.Text != "" || !strings.HasPrefix(at, "/acp/v1/messages/~") {
		t.Fatalf("got %d %q %q", r.Status, at, r.Text)
	}
	if r := s.send(t, q); r.Status != http.StatusAccepted || r.Header.Get("Location") != at {
		t.Errorf("held, the caller got %d %q", r.Status, r.Header.Get("Location"))
	}
	get := func(at string, header ...string) acptest.Reply {
		t.Helper()
		r, err := s.Get(s.server.URL+at, header...)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := get(at); r.Status != http.StatusAccepted {
		t.Errorf("before the answer: %d %s", r.Status, r.Text)
	}
	close(s.release)
	answer := s.wait(t, at)
	if answer.Message.Header.Type != "RESPONSE" || answer.Message.Header.ReplyTo != q.Header.ID || answer.Message.Body != "done" {
		t.Errorf("the answer is %s", answer.Text)
	}
	if again := get(at); again.Text != answer.Text {
		t.Errorf("read again it is %s", again.Text)
	}
	s.admit("other-token", "other", "agent*")
	s.Token = "other-token"
	for _, path := range []string{at, "/acp/v1/messages/nothing", "/acp/v1/messages/~", "/acp/v1/messages/"} {
		if r := get(path); r.Status != http.StatusNotFound {
			t.Errorf("another realm reads %s: %d %s", path, r.Status, r.Text)
		}
	}
}

// wait reads an answer until it is there.
func (s *site) wait(t *testing.T, at string) acptest.Reply {
	t.Helper()
	for {
		r, err := s.Get(s.server.URL+at, "Prefer", "wait=1")
		if err != nil || r.Status != http.StatusAccepted {
			if err != nil || r.Message == nil {
				t.Fatalf("got %d %s, %v", r.Status, r.Text, err)
			}
			return r
		}
	}
}

// A caller whose token is revoked while he is held gets no answer.
func TestRevoked(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	begun := make(chan struct{})
	s.expose("begins", func(ctx context.Context, turn *gatewaytest.Turn) gateway.Answer {
		close(begun)
		return s.slow(ctx, turn)
	})
	got := make(chan acptest.Reply, 1)
	go func() {
		r, _ := s.Send(acptest.New("REQUEST", "agentA", "begins", "1").Text())
		got <- r
	}()
	<-begun
	s.rt.Revoke("acme-token")
	if r := <-got; r.Status != http.StatusUnauthorized || r.Message != nil {
		t.Errorf("got %d %s", r.Status, r.Text)
	}
}

// V-A19, V-A20: a body arrives as it is, whatever it holds; one that is too
// long for a text is a part beside the message.
func TestBodies(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	seen := s.exposeAsks("calc")
	xml := "<a>\r\n<![CDATA[ <b> & ]]>\t\u00e9</a>\n"
	long := strings.Repeat("0123456789abcdef", 60<<10)
	for kind, body := range map[string]string{"application/xml": xml, "text/plain": long, "application/json": `{"a":1.50}`} {
		m := acptest.New("INFORM", "agentA", "calc", body)
		m.Header.ContentType = kind
		if r := s.send(t, m); r.Status != http.StatusAccepted {
			t.Fatalf("%s: %d %.200s", kind, r.Status, r.Text)
		}
		got := <-seen
		switch {
		case len(body) <= gateway.MaxText && (got.Body != body || len(got.Parts) > 0):
			t.Errorf("%s arrived as %q with %d parts", kind, got.Body, len(got.Parts))
		case len(body) > gateway.MaxText && (got.Body != "" || len(got.Parts) != 1 || sha256.Sum256(got.Parts[0].Data) != sha256.Sum256([]byte(body)) || got.Parts[0].Type != kind):
			t.Errorf("a body of %d bytes arrived as %d parts", len(body), len(got.Parts))
		}
		if got.Info["content_type"] != kind {
			t.Errorf("%s: %+v", kind, got.Info)
		}
	}
	if r := s.send(t, acptest.New("INFORM", "agentA", "calc", long+strings.Repeat("x", 100<<10))); r.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("more than 1 MiB: %d %.200s", r.Status, r.Text)
	}
}

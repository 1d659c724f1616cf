package message_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"skep/host/internal/gateway/amp/message"
)

const depth = 64

// document reads a file of spec/gateways/amp.
func document(t testing.TB, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile("../../../../../spec/gateways/amp/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

type example struct {
	Lines, Form string
	Message     json.RawMessage
}

// TestExamples (M-003, M-004, M-005, M-006, M-007, M-008, D-M1, D-M2, V-M01): each example
// of the document is taken in the profile default. Strict takes the one that has all that
// the document demands.
func TestExamples(t *testing.T) {
	t.Parallel()
	var examples []example
	document(t, "examples.json", &examples)
	if len(examples) != 24 {
		t.Fatalf("%d examples", len(examples))
	}
	for _, e := range examples {
		in, err := (message.Reader{Depth: depth}).Read(e.Message)
		if err != nil {
			t.Errorf("lines %s: %v", e.Lines, err)
		}
		if _, err := (message.Reader{Depth: depth, Strict: true}).Read(e.Message); (err == nil) != (e.Lines == "58-82") {
			t.Errorf("lines %s, strict: %v", e.Lines, err)
		}
		text, err := message.Write(in.Token, in.Message)
		if err != nil {
			t.Errorf("lines %s: %v", e.Lines, err)
		}
		again, err := (message.Reader{Depth: depth}).Read(text)
		if err != nil || again.Token != in.Token || again.ID != in.ID || string(again.Payload) != string(compact(t, in.Payload)) {
			t.Errorf("lines %s: written %s, %v", e.Lines, text, err)
		}
	}
}

func compact(t testing.TB, raw []byte) []byte {
	t.Helper()
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	in, err := (message.Reader{Depth: depth}).Read([]byte(`{"protocol":"AMP/1.0","message":{"type":"event","payload":` + string(raw) + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := message.Write(message.AMP, in.Message)
	if err != nil {
		t.Fatal(err)
	}
	return text[strings.Index(string(text), `"payload":`)+len(`"payload":`) : len(text)-2]
}

const whole = `{"protocol":"AMP/1.0","message":{"id":"m-1","type":"request","timestamp":"2025-01-27T10:00:00Z","source":{"agent_id":"agent-a","session_id":"s-1"},"destination":{"agent_id":"agent-b","capability":"summarization"},"headers":{"correlation_id":"c-1","priority":5,"timeout_ms":30000,"routing_hints":{"x":1}},"payload":{"capability":"summarization"}}}`

// TestRead (M-003, M-009, M-078, M-079, D-M5, V-M11): what is read and what is refused, with
// the reason and the place.
func TestRead(t *testing.T) {
	t.Parallel()
	change := func(old, new string) string { return strings.Replace(whole, old, new, 1) }
	for name, c := range map[string]struct{ text, reason, says string }{
		"whole":                    {whole, "", ""},
		"the other token":          {change("AMP/1.0", "AIP/1.0"), "", ""},
		"a later minor version":    {change("AMP/1.0", "AMP/1.7"), "", ""},
		"an unknown member":        {change(`"id"`, `"x_own":[1],"id"`), "", ""},
		"a priority beyond 10":     {change(`"priority":5`, `"priority":99`), "", ""},
		"another major version":    {change("AMP/1.0", "AMP/2.0"), message.ReasonVersion, "2.0"},
		"no version":               {change("AMP/1.0", "AMP"), message.ReasonProtocol, "protocol"},
		"another protocol":         {change("AMP/1.0", "ACP/1.0"), message.ReasonProtocol, "AMP/1.0"},
		"no protocol":              {change(`"protocol":"AMP/1.0",`, ""), message.ReasonProtocol, "missing"},
		"a flat message":           {`{"protocol":"AIP/1.0","from":"a","to":"b"}`, message.ReasonProtocol, "another protocol"},
		"an unknown type":          {change(`"request"`, `"demand"`), message.ReasonMalformed, "message.type"},
		"no type":                  {change(`"type":"request",`, ""), message.ReasonMalformed, "message.type"},
		"a time that is none":      {change("2025-01-27T10:00:00Z", "today"), message.ReasonMalformed, "timestamp"},
		"a line break in the id":   {change(`"m-1"`, `"m\n1"`), message.ReasonMalformed, "message.id"},
		"a long id":                {change(`"m-1"`, `"`+strings.Repeat("x", 257)+`"`), message.ReasonMalformed, "message.id"},
		"a long agent":             {change("agent-b", strings.Repeat("x", 257)), message.ReasonMalformed, "destination.agent_id"},
		"no time to answer":        {change("30000", "0"), message.ReasonMalformed, "timeout_ms"},
		"a negative time":          {change("30000", "-5"), message.ReasonMalformed, "timeout_ms"},
		"an endless time":          {change("30000", "1e300"), message.ReasonMalformed, "timeout_ms"},
		"a priority that is none":  {change(`"priority":5`, `"priority":"high"`), message.ReasonMalformed, "headers.priority"},
		"an id of another type":    {change(`"m-1"`, `7`), message.ReasonMalformed, "id"},
		"a payload that is none":   {change(`{"capability":"summarization"}}}`, `3}}`), message.ReasonMalformed, "payload"},
		"two readings":             {change(`"id"`, `"id":"m-0","id"`), message.ReasonMalformed, "twice"},
		"broken UTF-8":             {change("agent-a", "\xff"), message.ReasonMalformed, "UTF-8"},
		"too many levels":          {change(`"x":1`, `"x":`+strings.Repeat("[", 80)+strings.Repeat("]", 80)), message.ReasonMalformed, "max_depth"},
		"no JSON":                  {"amp", message.ReasonMalformed, "JSON"},
		"a list":                   {"[]", message.ReasonMalformed, "object"},
		"cut off":                  {whole[:len(whole)-2], message.ReasonMalformed, "JSON"},
		"a message that is a text": {`{"protocol":"AMP/1.0","message":"hello"}`, message.ReasonProtocol, "another protocol"},
	} {
		in, err := (message.Reader{Depth: depth}).Read([]byte(c.text))
		var f *message.Fault
		switch {
		case c.reason == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.reason == "" && (in.ID != "m-1" || in.Source.Session != "s-1" || *in.Headers.Priority > 10):
			t.Errorf("%s: read %+v", name, in.Message)
		case c.reason != "" && (!errors.As(err, &f) || f.Code != message.InvalidSchema || f.Reason != c.reason || !strings.Contains(f.Text, c.says)):
			t.Errorf("%s: %v, want %s and %q", name, err, c.reason, c.says)
		}
	}
}

// TestVerify (M-073, M-075, V-M32): what programs of other languages have signed counts, and
// a changed message or another key does not; what is signed here does as well.
func TestVerify(t *testing.T) {
	t.Parallel()
	var vectors []struct {
		By, Key string
		Message json.RawMessage
	}
	document(t, "signatures.json", &vectors)
	read := func(text []byte) message.Received {
		t.Helper()
		in, err := (message.Reader{Depth: depth}).Read(text)
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	for _, v := range vectors {
		if err := read(v.Message).Verify([]byte(v.Key)); err != nil {
			t.Errorf("by %s: %v", v.By, err)
		}
		if err := read(v.Message).Verify([]byte(v.Key + "x")); !errors.Is(err, message.ErrSignature) {
			t.Errorf("by %s, another key: %v", v.By, err)
		}
		changed := strings.Replace(string(v.Message), "héllo", "hello", 1)
		if err := read([]byte(changed)).Verify([]byte(v.Key)); !errors.Is(err, message.ErrSignature) {
			t.Errorf("by %s, changed: %v", v.By, err)
		}
	}
	m := read([]byte(strings.Replace(whole, `"summarization"}}}`, `"<a> \u2028 \"ü\" 1e3 ☃"}}}`, 1))).Message
	if err := message.Sign(&m, []byte("a key")); err != nil {
		t.Fatal(err)
	}
	text, err := message.Write(message.AIP, m)
	if err != nil {
		t.Fatal(err)
	}
	if err := read(text).Verify([]byte("a key")); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	for name, change := range map[string][2]string{
		"no signature":      {`"signature":{`, `"signature_":{`},
		"another algorithm": {"HMAC-SHA256", "none"},
		"no base64":         {m.Headers.Signature.Value, "?"},
		"a short value":     {m.Headers.Signature.Value, "aGVsbG8="},
	} {
		if err := read([]byte(strings.Replace(string(text), change[0], change[1], 1))).Verify([]byte("a key")); err == nil {
			t.Errorf("%s: it counts", name)
		}
	}
}

// TestDigest (G-025): a repeat may have another signature, credential and hop, and nothing
// else.
func TestDigest(t *testing.T) {
	t.Parallel()
	digest := func(text string) [32]byte {
		t.Helper()
		in, err := (message.Reader{Depth: depth}).Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		sum, err := in.Digest("hops")
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	first := digest(whole)
	for change, same := range map[[2]string]bool{
		{`"routing_hints":{`, `"signature":{"algorithm":"HMAC-SHA256","value":"x"},"routing_hints":{`}: true,
		{`"routing_hints":{`, `"authentication":{"type":"jwt","token":"x"},"routing_hints":{`}:         true,
		{`"x":1`, `"x":1,"hops":2`}:     true,
		{`"payload"`, ` "payload"`}:     true,
		{`"x":1`, `"x":2`}:              false,
		{"30000", "30001"}:              false,
		{"agent-b", "agent-c"}:          false,
		{`"summarization"}}}`, `""}}}`}: false,
	} {
		if got := digest(strings.Replace(whole, change[0], change[1], 1)); (got == first) != same {
			t.Errorf("%q: the digest is the same: %v", change, got == first)
		}
	}
}

// TestFault (M-076, M-077, M-078): each code has its status, and a reason may have another.
func TestFault(t *testing.T) {
	t.Parallel()
	for code, want := range map[message.Code]int{
		message.AgentNotFound: 404, message.CapabilityNotFound: 404, message.AuthenticationFailed: 401, message.RateLimitExceeded: 429,
		message.Timeout: 504, message.InvalidSchema: 400, message.ContextNotFound: 404, message.InsufficientResources: 503,
	} {
		if got := message.Faultf(code, "", "no").Status(); got != want {
			t.Errorf("%s has the status %d", code, got)
		}
	}
	f := message.Faultf(message.AuthenticationFailed, message.ReasonForbidden, "no")
	f.Details, f.RetryAfter = map[string]any{"more": 1}, 1500e6
	body := f.Body()
	if f.Status() != 403 || body.Details["reason"] != "FORBIDDEN" || body.Details["retry_after_ms"] != int64(1500) || body.Details["more"] != 1 {
		t.Errorf("%d %+v", f.Status(), body)
	}
}

// FuzzRead: no text makes the reader fail, and what it takes has one reading: written and
// read again it is the same, and what is signed can be verified.
func FuzzRead(f *testing.F) {
	f.Add([]byte(whole))
	var examples []example
	document(f, "examples.json", &examples)
	for _, e := range examples {
		f.Add([]byte(e.Message))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		in, err := (message.Reader{Depth: 16}).Read(text)
		if err != nil {
			if fault := new(message.Fault); !errors.As(err, &fault) || fault.Status() == 0 {
				t.Fatalf("the error is no fault: %v", err)
			}
			return
		}
		first, err := in.Digest()
		if err != nil {
			t.Fatal(err)
		}
		m := in.Message
		if err := message.Sign(&m, []byte("key")); err != nil {
			t.Fatal(err)
		}
		written, err := message.Write(in.Token, m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := (message.Reader{Depth: 16}).Read(written)
		if err != nil {
			t.Fatalf("%q is written as %q: %v", text, written, err)
		}
		if second, err := again.Digest(); err != nil || second != first {
			t.Fatalf("%q is written as %q, %v", text, written, err)
		}
		if err := again.Verify([]byte("key")); err != nil {
			t.Fatalf("%q: %v", written, err)
		}
	})
}

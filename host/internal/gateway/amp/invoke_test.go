package amp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/gatewaytest"
)

// TestInvoke (M-001, M-007, M-020, M-025, M-090, M-098, D-M1, D-M2, D-M3, V-M10): a
// capability request gets its response, under the token that it has and correlated with its
// id; a repeat gets the same; a caller that does not wait reads the answer where it will be.
func TestInvoke(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, protocol := range []string{"AMP/1.0", "AIP/1.0", "AIP/1.7"} {
		m := amptest.Request("agent-1", "echo", "text-analysis", amptest.Object{"text": "hello <b>"})
		m.Protocol, m.Message.Headers["correlation_id"], m.Message.Source.SessionID = protocol, "track", "s-1"
		first := s.send(t, m)
		wantText(t, first, "hello <b>")
		got := first.Message
		if first.Status != http.StatusOK || got.Protocol != protocol[:4]+"1.0" || got.Header("correlation_id") != m.Message.ID || got.Header("tracking_id") != "track" ||
			got.Message.Source.AgentID != "echo" || got.Message.Destination.AgentID != "agent-1" || got.Message.Source.SessionID != "s-1" {
			t.Errorf("%s: got %s", protocol, first.Text)
		}
		if took, is := got.Message.Headers["execution_time_ms"].(float64); !is || took < 0 {
			t.Errorf("%s: it took %v", protocol, got.Message.Headers["execution_time_ms"])
		}
		if again := s.send(t, m); again.Text != first.Text {
			t.Errorf("%s: again %s, not %s", protocol, again.Text, first.Text)
		}
		m.Message.Payload["parameters"] = amptest.Object{"text": "other"}
		wantFault(t, s.send(t, m), http.StatusConflict, "INVALID_SCHEMA", "CONFLICT")
	}
	slow := amptest.Mail("agent-1", "slow", "work")
	taken := s.send(t, slow, "Prefer", "respond-async")
	if taken.Status != http.StatusAccepted || taken.Message.Message.Payload["status"] != "partial" {
		t.Fatalf("got %d %s", taken.Status, taken.Text)
	}
	at := s.server.URL + taken.Header.Get("Location")
	if r, err := s.Get(at); err != nil || r.Status != http.StatusAccepted {
		t.Errorf("before the answer: %d %s, %v", r.Status, r.Text, err)
	}
	close(s.release)
	r, err := s.Get(at, "Prefer", "wait=30")
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, r, "done")
	for _, path := range []string{"messages/none", "messages/~x", "messages/"} {
		r, err := s.Get(s.server.URL + "/aip/v1/" + path)
		if err != nil {
			t.Fatal(err)
		}
		wantFault(t, r, http.StatusNotFound, "AGENT_NOT_FOUND", "MESSAGE_NOT_FOUND")
	}
}

// TestErrorCodes (M-004, M-005, M-006, M-021, M-023, M-039, M-076, M-077, M-078, M-080,
// D-M4, D-M6, D-M12, D-M13, V-M14, V-M15, V-M16, V-M17, V-M19, V-M20): what is wrong gets an
// error message with one of the codes, its reason and its status.
func TestErrorCodes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	request := func(change func(*amptest.Message)) amptest.Message {
		m := amptest.Request("agent-1", "echo", "text-analysis", amptest.Object{"text": "hello"})
		change(&m)
		return m
	}
	for name, c := range map[string]struct {
		change       func(*amptest.Message)
		status       int
		code, reason string
	}{
		"no such agent":        {func(m *amptest.Message) { m.Message.Destination.AgentID = "nobody" }, 404, "AGENT_NOT_FOUND", ""},
		"no such swarm":        {func(m *amptest.Message) { m.Message.Destination.AgentID = "echo@other" }, 404, "AGENT_NOT_FOUND", ""},
		"no such capability":   {func(m *amptest.Message) { m.Message.Payload["capability"] = "text-analysys" }, 404, "CAPABILITY_NOT_FOUND", ""},
		"two capabilities":     {func(m *amptest.Message) { m.Message.Destination.Capability = "other" }, 400, "INVALID_SCHEMA", "MALFORMED"},
		"no capability":        {func(m *amptest.Message) { delete(m.Message.Payload, "capability") }, 400, "INVALID_SCHEMA", "MALFORMED"},
		"a missing parameter":  {func(m *amptest.Message) { m.Message.Payload["parameters"] = amptest.Object{} }, 400, "INVALID_SCHEMA", "VIOLATIONS"},
		"no parameters":        {func(m *amptest.Message) { delete(m.Message.Payload, "parameters") }, 400, "INVALID_SCHEMA", "VIOLATIONS"},
		"parameters as a list": {func(m *amptest.Message) { m.Message.Payload["parameters"] = []any{} }, 400, "INVALID_SCHEMA", "MALFORMED"},
		"a payload of another": {func(m *amptest.Message) { m.Message.Payload["capability"] = 7 }, 400, "INVALID_SCHEMA", "MALFORMED"},
		"another's sender":     {func(m *amptest.Message) { m.Message.Source.AgentID = "other-1" }, 403, "AUTHENTICATION_FAILED", "FORBIDDEN"},
		"an unknown protocol":  {func(m *amptest.Message) { m.Protocol = "XMP/1.0" }, 400, "INVALID_SCHEMA", "PROTOCOL_UNKNOWN"},
		"another version":      {func(m *amptest.Message) { m.Protocol = "AMP/2.0" }, 400, "INVALID_SCHEMA", "VERSION_UNSUPPORTED"},
		"an unknown type":      {func(m *amptest.Message) { m.Message.Type = "demand" }, 400, "INVALID_SCHEMA", "MALFORMED"},
		"an answer to nothing": {func(m *amptest.Message) { m.Message.Type = "response" }, 404, "AGENT_NOT_FOUND", "MESSAGE_NOT_FOUND"},
		"an unknown registry": {func(m *amptest.Message) {
			m.Message.Destination.AgentID, m.Message.Destination.Capability = "registry", "lottery"
		}, 404, "CAPABILITY_NOT_FOUND", ""},
		"its time is over": {func(m *amptest.Message) {
			*m = amptest.Mail("agent-1", "slow", "x")
			m.Message.Headers["timeout_ms"] = 50
		}, 504, "TIMEOUT", ""},
		"the task's time is over": {func(m *amptest.Message) { *m = amptest.Mail("agent-1", "late", "x") }, 504, "TIMEOUT", ""},
	} {
		t.Run(name, func(t *testing.T) { wantFault(t, s.send(t, request(c.change)), c.status, c.code, c.reason) })
	}
	unknown := s.send(t, request(func(m *amptest.Message) { m.Message.Payload["capability"] = "text-analysys" })).Message.Details()
	if fmt.Sprint(unknown["available_capabilities"]) != "[mail.message text-analysis]" || unknown["suggestion"] != "Try 'text-analysis' instead" {
		t.Errorf("details %v", unknown)
	}
	missing := s.send(t, request(func(m *amptest.Message) { m.Message.Payload["parameters"] = amptest.Object{} })).Message.Details()
	if list := fmt.Sprint(missing["violations"]); !strings.Contains(list, "text") {
		t.Errorf("violations %v", missing)
	}
	if r := s.send(t, amptest.Mail("agent-1", "fails", "x")); r.Status != http.StatusOK || r.Message.Message.Payload["status"] != "failed" {
		t.Errorf("a failure is %d %s", r.Status, r.Text)
	}
	for _, c := range []struct {
		err          error
		status       int
		code, reason string
	}{
		{fmt.Errorf("too many: %w", gateway.ErrBusy), 429, "RATE_LIMIT_EXCEEDED", ""},
		{fmt.Errorf("no right: %w", gateway.ErrDenied), 403, "AUTHENTICATION_FAILED", "FORBIDDEN"},
		{gateway.ErrDraining, 503, "INSUFFICIENT_RESOURCES", "DRAINING"},
		{gateway.ErrElsewhere, 503, "INSUFFICIENT_RESOURCES", "UNREACHABLE"},
		{fmt.Errorf("the disk is full of secrets"), 500, "INSUFFICIENT_RESOURCES", "INTERNAL"},
	} {
		s.rt.FailNext("Ask", c.err)
		r := s.send(t, amptest.Mail("agent-1", "echo", "x"))
		wantFault(t, r, c.status, c.code, c.reason)
		if c.status == 429 && r.Header.Get("Retry-After") != "10" || strings.Contains(r.Text, "secrets") {
			t.Errorf("%v: %v %s", c.err, r.Header, r.Text)
		}
	}
	large := newSite(t, func(o *amp.Options) { o.MaxBody = 1000 })
	wantFault(t, large.send(t, amptest.Mail("agent-1", "echo", strings.Repeat("x", 1000))), http.StatusRequestEntityTooLarge, "INVALID_SCHEMA", "TOO_LARGE")
}

// TestOutputSchema (M-021): an answer that does not fit the output_schema has failed, and
// is not passed on.
func TestOutputSchema(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	number := gateway.Capability{ID: "count", Output: json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`)}
	odd := gateway.Capability{ID: "odd", Output: json.RawMessage(`{"type":"object","$ref":"https://elsewhere.example/schema"}`)}
	answer := ""
	s.expose("counts", func(context.Context, *gatewaytest.Turn) gateway.Answer { return gateway.Answer{Body: answer} }, number, odd)
	for body, want := range map[string]string{`{"n":3}`: "success", `{"n":"three"}`: "failed", "three": "failed", `[3]`: "failed"} {
		answer = body
		r := s.send(t, amptest.Request("agent-1", "counts", "count", nil))
		if r.Message == nil || r.Message.Message.Payload["status"] != want || want == "failed" && strings.Contains(r.Text, "three") {
			t.Errorf("%s: %s", body, r.Text)
		}
	}
	if r := s.send(t, amptest.Request("agent-1", "counts", "odd", nil)); r.Message.Message.Payload["status"] != "success" {
		t.Errorf("a schema that cannot be checked: %s", r.Text)
	}
	recorded := 0
	for _, e := range s.rt.Events() {
		if e.Out && e.Verdict == "failed" {
			recorded++
		}
	}
	if recorded != 3 {
		t.Errorf("%d failed answers are recorded", recorded)
	}
}

// TestTypesOfPayload: a member of another type is named as the document has it.
func TestTypesOfPayload(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for member, m := range map[string]amptest.Message{
		"message.payload.delegation.subtask.completion_callback: is a number": amptest.New("request", "agent-1", "echo", amptest.Object{
			"delegation": amptest.Object{"parent_task_id": "p", "subtask": amptest.Object{"capability": "mail.message", "completion_callback": 5}},
		}),
		"message.payload.if_version: is a number 1e40": amptest.New("request", "agent-1", "context", amptest.Object{
			"operation": "update", "context_id": "acme:1", "if_version": json.Number("1e40"),
		}),
		"message.payload.query: is a string": amptest.New("request", "agent-1", "registry", amptest.Object{
			"query": "agents",
		}),
	} {
		r, err := s.Send(m)
		if err != nil {
			t.Fatal(err)
		}
		wantFault(t, r, http.StatusBadRequest, "INVALID_SCHEMA", "MALFORMED")
		if !strings.Contains(r.Text, `"`+member) {
			t.Errorf("want %q in %s", member, r.Text)
		}
	}
}

// TestCredentials (M-070, M-071, M-073, M-074, M-075, D-M15, V-M13): a caller is proven by a
// bearer token, an API key or a credential in the message, and where a key is shared by a
// signature; nothing else counts, and two credentials must be the same.
func TestCredentials(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	key := []byte("a-shared-key-of-16-bytes")
	s.admit("signs-token", gateway.Partner{Name: "signs", IDs: []string{"signer*"}, HMACKey: key})
	s.admit("", gateway.Partner{Name: "alone", IDs: []string{"lone*"}, HMACKey: key, Options: map[string]any{"hmac_alone": true}})
	within := func(secret, member string) amptest.Message {
		m := amptest.Mail("agent-1", "echo", "hello")
		m.Message.Headers["authentication"] = amptest.Object{"type": "api_key", member: secret}
		return m
	}
	signed := func(source string, at time.Time, k []byte) amptest.Message {
		return sign(t, amptest.Mail(source, "echo", "hello"), at, k)
	}
	now := time.Now()
	for name, c := range map[string]struct {
		token, apiKey string
		m             amptest.Message
		reason        string
	}{
		"a bearer token":              {token, "", amptest.Mail("agent-1", "echo", "hello"), ""},
		"an API key":                  {"", token, amptest.Mail("agent-1", "echo", "hello"), ""},
		"a token in the message":      {"", "", within(token, "token"), ""},
		"a key in the message":        {"", "", within(token, "key"), ""},
		"the same twice":              {token, "", within(token, "credentials"), ""},
		"a signature besides":         {"signs-token", "", signed("signer-1", now, key), ""},
		"a signature alone":           {"", "", signed("lone-1", now, key), ""},
		"a signature that is unasked": {token, "", signed("agent-1", now, key), ""},
		"nothing":                     {"", "", amptest.Mail("agent-1", "echo", "hello"), "CREDENTIAL"},
		"an unknown token":            {"none", "", amptest.Mail("agent-1", "echo", "hello"), "CREDENTIAL"},
		"an unknown API key":          {"", "none", amptest.Mail("agent-1", "echo", "hello"), "CREDENTIAL"},
		"an unknown one within":       {"", "", within("none", "token"), "CREDENTIAL"},
		"another within":              {token, "", within("signs-token", "token"), "CREDENTIAL"},
		"a token and another API key": {token, "signs-token", amptest.Mail("agent-1", "echo", "hello"), "CREDENTIAL"},
		"a token and itself as key":   {token, token, amptest.Mail("agent-1", "echo", "hello"), ""},
		"a user":                      {"user-token", "", amptest.Mail("agent-1", "echo", "hello"), "FORBIDDEN"},
		"no signature":                {"signs-token", "", amptest.Mail("signer-1", "echo", "hello"), "SIGNATURE"},
		"another key":                 {"signs-token", "", signed("signer-1", now, []byte("another-key-of-16-bytes")), "SIGNATURE"},
		"a signature of a day ago":    {"signs-token", "", signed("signer-1", now.Add(-24*time.Hour), key), "EXPIRED"},
		"a signature alone, too old":  {"", "", signed("lone-1", now.Add(-time.Hour), key), "EXPIRED"},
		"not alone":                   {"", "", signed("signer-1", now, key), "SIGNATURE"},
		"alone with another key":      {"", "", signed("lone-1", now, []byte("another-key-of-16-bytes")), "SIGNATURE"},
	} {
		t.Run(name, func(t *testing.T) {
			cl := amptest.Client{URL: s.URL, Token: c.token}
			var header []string
			if c.apiKey != "" {
				header = []string{"X-API-Key", c.apiKey}
			}
			r, err := cl.Send(c.m, header...)
			if err != nil {
				t.Fatal(err)
			}
			if c.reason == "" {
				wantText(t, r, "hello")
				return
			}
			status := http.StatusUnauthorized
			if c.reason == "FORBIDDEN" {
				status = http.StatusForbidden
			}
			wantFault(t, r, status, "AUTHENTICATION_FAILED", c.reason)
		})
	}
}

// TestSignedRepeat (M-075): a repeat of a signed message gets its answer when its time is
// past; the answers are signed.
func TestSignedRepeat(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	key := []byte("a-shared-key-of-16-bytes")
	s.admit("signs-token", gateway.Partner{Name: "signs", IDs: []string{"signer*"}})
	cl := amptest.Client{URL: s.URL, Token: "signs-token"}
	m := sign(t, amptest.Mail("signer-1", "echo", "hello"), time.Now().Add(-time.Hour), key)
	if _, err := cl.Send(m); err != nil { // no key is shared yet
		t.Fatal(err)
	}
	s.admit("", gateway.Partner{Name: "signs", IDs: []string{"signer*"}, HMACKey: key})
	r, err := cl.Send(m)
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, r, "hello")
	in, err := (message.Reader{Depth: 64}).Read([]byte(r.Text))
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Verify(key); err != nil {
		t.Errorf("the answer: %v", err)
	}
}

// sign signs a message as another program would.
func sign(t *testing.T, m amptest.Message, at time.Time, key []byte) amptest.Message {
	t.Helper()
	m.Message.Timestamp = at.UTC().Format(time.RFC3339)
	in, err := (message.Reader{Depth: 64}).Read([]byte(m.Text()))
	if err != nil {
		t.Fatal(err)
	}
	if err := message.Sign(&in.Message, key); err != nil {
		t.Fatal(err)
	}
	m.Message.Headers["signature"] = amptest.Object{"algorithm": in.Headers.Signature.Algorithm, "value": in.Headers.Signature.Value}
	return m
}

// TestCompetingAgents (M-114, V-M37): of agents with one capability each gets work: requests that name
// none are shared among them while they work.
func TestCompetingAgents(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var mu sync.Mutex
	got, all := map[string]int{}, make(chan struct{}, 9)
	works := func(ctx context.Context, turn *gatewaytest.Turn) gateway.Answer {
		mu.Lock()
		got[turn.Agent.Name]++
		mu.Unlock()
		all <- struct{}{}
		return s.slow(ctx, turn)
	}
	for _, name := range []string{"worker-1", "worker-2", "worker-3"} {
		s.expose(name, works, gateway.Capability{ID: "digging"})
	}
	for range 9 {
		if r := s.send(t, amptest.Request("agent-1", "", "digging", amptest.Object{}), "Prefer", "respond-async"); r.Status != http.StatusAccepted {
			t.Fatalf("got %d %s", r.Status, r.Text)
		}
	}
	for range 9 {
		<-all
	}
	mu.Lock()
	defer mu.Unlock()
	for name, n := range got {
		if n != 3 {
			t.Errorf("%s has %d of 9 requests", name, n)
		}
	}
	close(s.release)
}

package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"skep/spec/mail"
)

// Whatever is sent, the outcome is a post that the swarm may judge or a 400.
func FuzzParsePost(f *testing.F) {
	for _, seed := range []string{
		`{"subject":"s","body":"b","msg_type":"request","entrypoint":null,"show_events":false,"task_id":null,"resume_from":null,"kwargs":{}}`,
		`{"message":"m","kwargs":{"timeout":1.5,"max_steps":3}}`,
		`{"resume_from":"breakpoint_tool_call","task_id":"t","kwargs":{"breakpoint_tool_call_result":"[{\"call_id\":\"c\",\"content\":\"x\"}]"}}`,
		`{"body":"b","body":"c"}`, `[[[[`, `{"body":"\ud800"}`, "\xff", `null`, `{"a":{"b":[{"c":1}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := parsed(raw, readPost)
		if err != nil {
			var refused *fault
			if !errors.As(err, &refused) || refused.status != http.StatusBadRequest || refused.detail == "" {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		if p.Type != mail.Request && p.Type != mail.Broadcast && p.Type != mail.Interrupt {
			t.Errorf("%q: type %q", raw, p.Type)
		}
		if p.Body == "" && p.Results == nil || p.Timeout < 0 || p.MaxSteps < 0 || p.Subject == "" {
			t.Errorf("%q: %+v", raw, p)
		}
		// One reading: a reader that takes the last of two names sees the same.
		var again map[string]any
		if err := json.Unmarshal(raw, &again); err != nil {
			t.Errorf("%q is no JSON: %v", raw, err)
		}
		if body, ok := again["body"].(string); ok && body != "" && body != p.Body {
			t.Errorf("%q: body %q, want %q", raw, p.Body, body)
		}
	})
}

// Whatever is sent to the other routes that take a body, the outcome is a value
// or a refusal that is the caller's fault.
func FuzzParseBodies(f *testing.F) {
	for _, seed := range []string{
		`{"name":"depot","base_url":"https://depot.example","auth_token":null,"volatile":false,"metadata":{}}`,
		`{"user_token":"u","body":"b","targets":["boss"],"routing_info":{}}`,
		`{"input":[{"role":"user","content":[{"text":"a"}]},{"type":"function_call_output","call_id":"c","output":"o"}],"tools":[],"previous_response_id":"t"}`,
		`{"message":{"message_id":"m","source_swarm":"a","target_swarm":"b","timestamp":"2026-03-01T09:31:00Z","msg_type":"request","task_owner":"user:c@a","task_contributors":["user:c@a"],"payload":{"task_id":"t","request_id":"0f3a7a34-9d0e-4f0c-9a55-6a6a0a3b8f21","sender":{"address_type":"agent","address":"c"},"recipient":{"address_type":"agent","address":"d"},"subject":"s","body":"b"}}}`,
		`{"message_id":"m","payload":{}}`, `{"message":[]}`, `[`, `null`, "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, _, wrapper := parseInterswarm(raw, fuzzDepth)
		_, registration := parsed(raw, readRegistration)
		_, outbound := parsed(raw, func(o *object) (*outboundPost, error) { return readOutbound(o, raw, fuzzDepth) })
		_, responses := parsed(raw, readResponsesPost)
		for name, err := range map[string]error{
			"registration": registration, "wrapper": wrapper, "outbound": outbound, "responses": responses,
		} {
			var refused *fault
			if err != nil && (!errors.As(err, &refused) || refused.status >= 500 || refused.detail == "") {
				t.Errorf("%s of %q: %v", name, raw, err)
			}
		}
	})
}

const fuzzDepth = 8

// parsed reads a body as one of the routes does.
func parsed[T any](raw []byte, read func(*object) (T, error)) (v T, err error) {
	o, err := parseObject(raw, fuzzDepth)
	if err != nil {
		return v, err
	}
	return read(o)
}

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
		p, err := parsePost(raw, 8)
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

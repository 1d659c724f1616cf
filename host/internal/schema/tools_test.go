package schema_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/internal/schema"
	"skep/spec/mail"
)

// TestTools: the tools are those that package mail names, each ready to be shown
// (S-10).
func TestTools(t *testing.T) {
	t.Parallel()
	s := load(t)
	var names []string
	for _, tool := range s.Tools() {
		names = append(names, tool.Name)
		if tool.Description == "" {
			t.Errorf("%s has no description", tool.Name)
		}
		var params struct {
			Type                 string
			AdditionalProperties *bool
			Required             []string
			Properties           map[string]struct {
				Type        any
				Description string
			}
		}
		if err := json.Unmarshal(s.ToolSchema(tool.Name), &params); err != nil {
			t.Fatal(err)
		}
		if params.Type != "object" || params.AdditionalProperties == nil || *params.AdditionalProperties {
			t.Errorf("%s: parameters are no closed object", tool.Name)
		}
		for p, def := range params.Properties {
			optional := strings.Contains(strings.Trim(string(mustJSON(t, def.Type)), "[]"), "null")
			if def.Description == "" || optional == slices.Contains(params.Required, p) {
				t.Errorf("%s: %s: description %q, nullable %v, required %v", tool.Name, p, def.Description, optional, !optional)
			}
		}
	}
	if !slices.Equal(names, mail.Tools()) {
		t.Errorf("tools are %v, want %v", names, mail.Tools())
	}
	if s.ToolSchema("calc") != nil {
		t.Error("a schema for a tool that is none")
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestToolArgs(t *testing.T) {
	t.Parallel()
	s := load(t)
	const full = `{"target":"a","subject":"s","body":"b"}`
	for _, tc := range []struct{ tool, args, want string }{
		{"send_request", full, ""},
		{"send_response", full, ""},
		{"send_interrupt", full, ""},
		{"send_request", `{"target":"a","subject":"s"}`, "body: is missing"},
		{"send_request", `{"target":"","subject":"","body":""}`, "target: must not be empty"},
		{"send_request", `{"target":null,"subject":"","body":""}`, "target: must be a string, not null"},
		{"send_request", `{"target":"a","subject":"s","body":"b","cc":1}`, "cc: is not a known key"},
		{"send_broadcast", `{"subject":"s","body":"b"}`, ""},
		{"send_broadcast", `{"subject":"s","body":"b","targets":null}`, ""},
		{"send_broadcast", `{"subject":"s","body":"b","targets":["all"]}`, ""},
		{"send_broadcast", `{"subject":"s","body":"b","targets":[]}`, "targets: must not be empty"},
		{"send_broadcast", `{"subject":"s","body":"b","targets":["a",1]}`, "targets[1]: must be a string, not a number"},
		{"send_broadcast", `{"subject":"s","body":"b","targets":"all"}`, "targets: must be an array or null, not a string"},
		{"acknowledge_broadcast", `{}`, ""},
		{"acknowledge_broadcast", `{"note":null}`, ""},
		{"ignore_broadcast", `{"reason":"old"}`, ""},
		{"await_message", `{"reason":1}`, "reason: must be a string or null, not a number"},
		{"await_message", `[]`, "must be an object, not an array"},
		{"await_message", ``, "is not valid JSON: unexpected end of JSON input"},
		{"task_complete", `{"finish_message":""}`, ""},
		{"task_complete", `{}`, "finish_message: is missing"},
		{"help", `{}`, ""},
		{"help", `{"get_summary":null,"get_identity":true,"get_tool_help":["send_request"],"get_full_protocol":false}`, ""},
		{"help", `{"get_tool_help":["help"]}`, `get_tool_help[0]: must be one of "send_request", "send_response", ` +
			`"send_interrupt", "send_broadcast", "acknowledge_broadcast", "ignore_broadcast", "await_message", "task_complete", "send_interswarm_broadcast", "discover_swarms"`},
		{"send_interswarm_broadcast", `{"subject":"s","body":"b"}`, ""},
		{"send_interswarm_broadcast", `{"subject":"s","body":"b","target_swarms":[]}`, ""},
		{"send_interswarm_broadcast", `{"subject":"s","body":"b","target_swarms":null}`, ""},
		{"send_interswarm_broadcast", `{"subject":"s","body":"b","target_swarms":["a",""]}`, "target_swarms[1]: must not be empty"},
		{"send_interswarm_broadcast", `{"subject":"s","body":"b","targets":["a"]}`, "targets: is not a known key"},
		{"discover_swarms", `{"discovery_urls":["https://a.example"]}`, ""},
		{"discover_swarms", `{}`, "discovery_urls: is missing"},
		{"discover_swarms", `{"discovery_urls":[]}`, "discovery_urls: must not be empty"},
		{"discover_swarms", `{"discovery_urls":["1","2","3","4","5","6","7","8","9"]}`, "discovery_urls: must have at most 8 entries"},
		{"discover_swarms", `{"discovery_urls":["` + strings.Repeat("x", 2049) + `"]}`, "discovery_urls[0]: must have at most 2048 characters"},
		{"calc", `{}`, `unknown tool "calc"`},
	} {
		got := ""
		if err := s.ToolArgs(tc.tool, []byte(tc.args)); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("ToolArgs(%s, %s)\n got %s\nwant %s", tc.tool, tc.args, got, tc.want)
		}
	}
	if err := s.ToolArgs("calc", nil); !errors.Is(err, schema.ErrUnknownTool) {
		t.Errorf("error %v, want ErrUnknownTool", err)
	}
}

// TestHugeNumber: the library would compute 1e999999999 to the last digit.
func TestHugeNumber(t *testing.T) {
	t.Parallel()
	s := load(t)
	start := time.Now()
	err := s.ToolArgs("help", []byte(`{"get_summary":1e999999999,"get_identity":-1e-999999999}`))
	if err == nil || time.Since(start) > 5*time.Second {
		t.Errorf("error %v after %v", err, time.Since(start))
	}
}

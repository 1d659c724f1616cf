package mcp_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/mcp"
)

func names(t *testing.T, s *sdk.ClientSession) (list []string) {
	t.Helper()
	res, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range res.Tools {
		list = append(list, tool.Name)
	}
	return list
}

// a caller sees a tool for each agent that his tenant exposes at this moment; the
// lists of two tenants never mix.
func TestToolsOfCallers(t *testing.T) {
	t.Parallel()
	versions(t, func(t *testing.T, version string) {
		h := newHost(t, mcp.Options{}, gatewaytest.Echo)
		h.Expose("b", gateway.ExposedAgent{Swarm: "s", Name: "secret", Entrypoint: true}, gatewaytest.Echo)
		h.Expose("a", gateway.ExposedAgent{Swarm: "s", Name: "inner"}, gatewaytest.Echo)
		alice, carol := h.connect(t, "alice", "/mcp", version, nil), h.connect(t, "carol", "/mcp", version, nil)
		acme := h.connect(t, "acme", "/mcp", version, nil)
		for _, want := range []struct {
			s    *sdk.ClientSession
			list []string
		}{{alice, []string{"calc"}}, {carol, []string{"calc", "secret"}}, {acme, []string{"calc", "inner"}}} {
			if got := names(t, want.s); !reflect.DeepEqual(got, want.list) {
				t.Errorf("tools %v, want %v", got, want.list)
			}
		}
		h.Expose("a", gateway.ExposedAgent{Swarm: "other", Name: "calc", Entrypoint: true}, gatewaytest.Echo)
		if got, want := names(t, alice), []string{"other__calc", "s__calc"}; !reflect.DeepEqual(got, want) {
			t.Errorf("tools of two swarms %v, want %v", got, want)
		}
		if got, want := names(t, h.connect(t, "alice", "/mcp/other", version, nil)), []string{"calc"}; !reflect.DeepEqual(got, want) {
			t.Errorf("tools of one swarm %v, want %v", got, want)
		}
		h.Hide("a", "other", "calc")
		if got, want := names(t, alice), []string{"calc"}; !reflect.DeepEqual(got, want) {
			t.Errorf("tools after a reload %v, want %v", got, want)
		}
	})
}

// unknown, unexposed and foreign tools give the same bytes.
func TestUnknownToolsAreAlike(t *testing.T) {
	t.Parallel()
	h := newHost(t, mcp.Options{}, gatewaytest.Echo)
	h.Expose("b", gateway.ExposedAgent{Swarm: "s", Name: "agent1", Entrypoint: true}, gatewaytest.Echo)
	h.Expose("a", gateway.ExposedAgent{Swarm: "s", Name: "agent2"}, gatewaytest.Echo)
	var first string
	for _, tool := range []string{"agent0", "agent1", "agent2"} {
		_, _, body := h.post(t, "alice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":{"message":"hello"}}}`,
			"Mcp-Session-Id", h.initialize(t, "alice"))
		body = strings.ReplaceAll(body, tool, "NAME")
		if first == "" {
			first = body
		}
		if m := message(t, body); body != first || m.Error == nil || m.Error.Code != -32602 {
			t.Errorf("%s: %s, want %s", tool, body, first)
		}
	}
}

// an agent that declares one input is called with it; the schema reaches the
// client whole, and what does not fit it is refused before the agent gets it.
func TestDeclaredInput(t *testing.T) {
	t.Parallel()
	versions(t, func(t *testing.T, version string) {
		h := newHost(t, mcp.Options{}, gatewaytest.Echo)
		schema := `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"n":{"type":"integer"}},
			"properties":{"a":{"$ref":"#/$defs/n"},"subject":{"type":"integer"}},"required":["a"],"additionalProperties":false}`
		add := gateway.Capability{ID: "math.add", Description: "adds", Input: json.RawMessage(schema)}
		h.Expose("a", gateway.ExposedAgent{Swarm: "s", Name: "calc", Entrypoint: true, Capabilities: []gateway.Capability{add}}, gatewaytest.Echo)
		s := h.connect(t, "alice", "/mcp", version, nil)
		list, err := s.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != "calc" {
			t.Fatalf("tools %+v, %v", list, err)
		}
		in := list.Tools[0].InputSchema.(map[string]any)
		for _, key := range []string{"$schema", "$defs", "required", "additionalProperties"} {
			if _, ok := in[key]; !ok {
				t.Errorf("the schema lost %s: %v", key, in)
			}
		}
		if p := in["properties"].(map[string]any); p["task_id"] == nil || p["subject"].(map[string]any)["type"] != "integer" {
			t.Errorf("properties %v", p)
		}
		if res := calls(t, s, "calc", map[string]any{"a": 1, "subject": 2}); text(res) != `{"a":1,"subject":2}` {
			t.Errorf("the agent got %s", text(res))
		}
		for _, bad := range []map[string]any{{"a": "x"}, {"a": 1, "b": 2}, {"message": 1}, {}} {
			if res := calls(t, s, "calc", bad); !res.IsError {
				t.Errorf("%v: %s", bad, text(res))
			}
		}
		sub := add
		sub.ID = "math.sub"
		h.Expose("a", gateway.ExposedAgent{Swarm: "s", Name: "calc", Entrypoint: true, Capabilities: []gateway.Capability{add, sub}}, gatewaytest.Echo)
		if got, want := names(t, s), []string{"calc", "calc__math.add", "calc__math.sub"}; !reflect.DeepEqual(got, want) {
			t.Errorf("tools %v, want %v", got, want)
		}
	})
}

// the newest tasks and the agents are resources, entrypoints prompts; nothing of
// another caller is.
func TestResourcesAndPrompts(t *testing.T) {
	t.Parallel()
	versions(t, func(t *testing.T, version string) {
		h := newHost(t, mcp.Options{}, gatewaytest.Echo)
		s := h.connect(t, "alice", "/mcp", version, nil)
		calls(t, s, "calc", map[string]any{"message": "one", "task_id": "task 1"})
		calls(t, s, "calc", map[string]any{"message": "two", "task_id": "task 1"})
		list, err := s.ListResources(t.Context(), nil)
		if err != nil || len(list.Resources) != 2 || list.Resources[0].URI != "mail://agents/s/calc" || list.Resources[1].URI != "mail://tasks/task%201" {
			t.Fatalf("resources %+v, %v", list, err)
		}
		for uri, want := range map[string]string{"mail://agents/s/calc": "calculates", "mail://tasks/task%201": `"text":"two"`} {
			read, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
			if err != nil || !strings.Contains(read.Contents[0].Text, want) {
				t.Errorf("%s: %+v, %v", uri, read, err)
			}
		}
		if _, err := h.connect(t, "bob", "/mcp", version, nil).ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "mail://tasks/task%201"}); err == nil {
			t.Error("another caller read the task")
		}
		if templates, err := s.ListResourceTemplates(t.Context(), nil); err != nil || len(templates.ResourceTemplates) != 2 {
			t.Errorf("templates %+v, %v", templates, err)
		}
		prompts, err := s.ListPrompts(t.Context(), nil)
		if err != nil || len(prompts.Prompts) != 1 || prompts.Prompts[0].Name != "calc" {
			t.Fatalf("prompts %+v, %v", prompts, err)
		}
		prompt, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "calc", Arguments: map[string]string{"message": "2+2"}})
		if err != nil || !strings.Contains(prompt.Messages[0].Content.(*sdk.TextContent).Text, "2+2") {
			t.Errorf("prompt %+v, %v", prompt, err)
		}
		if _, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "other"}); err == nil {
			t.Error("an unknown prompt was found")
		}
	})
}

package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/mcp"
)

// TestConformance runs all server scenarios of the official suite. It needs
// agents of certain names; what no agent can show is listed in conformance.yml with its
// reason, and the suite fails when an entry of that list passes.
func TestConformance(t *testing.T) {
	t.Parallel()
	node := clients(t).node
	h := newHost(t, mcp.Options{}, gatewaytest.Echo)
	for name, agent := range suiteAgents {
		c := gateway.Capability{ID: name, Input: json.RawMessage(`{"type":"object","properties":{}}`)}
		if agent.input != "" {
			c.Input = json.RawMessage(agent.input)
		}
		h.Expose("a", gateway.ExposedAgent{Swarm: "s", Name: name, Entrypoint: true, Capabilities: []gateway.Capability{c}}, agent.run)
	}
	out, err := exec.CommandContext(t.Context(), node, clients(t).path("@modelcontextprotocol/conformance/dist/index.js"), "server",
		"--url", h.withoutToken(t)+"/mcp", "--suite", "all", "--expected-failures", "testdata/conformance.yml", "-o", t.TempDir()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// withoutToken serves clients that send no credential as alice.
func (h *host) withoutToken(t *testing.T) (url string) {
	t.Helper()
	listener := gatewaytest.Listener(h.Runtime, h.gateway.Mounts())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer alice")
		listener.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

type suiteAgent struct {
	input string
	run   gatewaytest.Agent
}

// answers is an agent with one answer, of text and parts: names, types and data in turn.
func answers(text string, parts ...string) suiteAgent {
	return suiteAgent{run: func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		a := gateway.Answer{Body: text}
		for i := 0; i < len(parts); i += 3 {
			a.Parts = append(a.Parts, turn.Part(parts[i], parts[i+1], []byte(parts[i+2])))
		}
		return a
	}}
}

// asking is an agent that asks one question, of a schema.
func asking(input, schema string) suiteAgent {
	return suiteAgent{input: input, run: func(ctx context.Context, turn *gatewaytest.Turn) gateway.Answer {
		text, _, _ := turn.Question(ctx, gateway.Question{ID: turn.Ask.ID, Call: turn.Ask.ID, Text: "Please tell", Schema: json.RawMessage(schema)})
		return gateway.Answer{Body: "You said " + text}
	}}
}

var suiteAgents = map[string]suiteAgent{
	"test_simple_text":            answers("This is a simple text response for testing."),
	"test_image_content":          answers("", "p.png", "image/png", "png"),
	"test_audio_content":          answers("", "a.wav", "audio/wav", "wav"),
	"test_embedded_resource":      answers("", "t.txt", "text/plain", "txt"),
	"test_multiple_content_types": answers("text", "p.png", "image/png", "png", "t.json", "application/json", "{}"),
	"test_simple_prompt":          answers(""),
	"test_error_handling": {run: func(context.Context, *gatewaytest.Turn) gateway.Answer {
		return gateway.Answer{Outcome: gateway.Failed, Body: "This tool intentionally returns an error for testing"}
	}},
	"test_tool_with_progress": {run: func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		for _, done := range []float64{0, 0.5, 1} {
			turn.Progress("step", done)
		}
		return gateway.Answer{Body: "done"}
	}},
	"test_prompt_with_arguments": {input: `{"type":"object","properties":{"arg1":{"type":"string"},"arg2":{"type":"string"}}}`, run: gatewaytest.Echo},
	"json_schema_2020_12_tool": {input: `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
		"$defs":{"address":{"type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
		"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"}},"additionalProperties":false}`, run: gatewaytest.Echo},
	"test_elicitation": asking(`{"type":"object","properties":{"message":{"type":"string"}}}`,
		`{"type":"object","properties":{"username":{"type":"string"},"email":{"type":"string"}},"required":["username","email"]}`),
	"test_elicitation_sep1034_defaults": asking("", `{"type":"object","properties":{
		"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},
		"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`),
	"test_elicitation_sep1330_enums": asking("", `{"type":"object","properties":{
		"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
		"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First"},{"const":"value2","title":"Second"}]},
		"legacyEnum":{"type":"string","enum":["opt1","opt2"],"enumNames":["One","Two"]},
		"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},
		"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First"},{"const":"value2","title":"Second"}]}}}}`),
}

package amp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/gatewaytest"
	"skep/spec/gateways/amp/taxonomy"
)

// definitionOf is the document's name for a schema of a capability: TextAnalysisInput.
func definitionOf(capability, kind string) string {
	name := ""
	for word := range strings.SplitSeq(capability, "-") {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	return name + kind
}

func refTo(capability, kind string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"$ref": "#/definitions/%s"}`, definitionOf(capability, kind)))
}

// TestTaxonomy (M-110, D-M11): each capability of the document has a schema of what it takes and of what it
// answers, to which an agent's declaration refers as the document does: what fits reaches the agent,
// what does not is refused, and an answer that does not has failed.
func TestTaxonomy(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../../spec/gateways/amp/taxonomy/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	type pair struct{ Valid, Invalid json.RawMessage }
	var vectors []struct {
		Capability    string
		Input, Output pair
	}
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	known, err := taxonomy.Read()
	if err != nil {
		t.Fatal(err)
	}
	var ids, tried []string
	for _, c := range known.Categories {
		ids = append(ids, c.Capabilities...)
	}
	s := newSite(t)
	for _, v := range vectors {
		tried = append(tried, v.Capability)
		for _, kind := range []string{"Input", "Output"} {
			var schema struct {
				Type     string
				Required []string
			}
			if err := json.Unmarshal(known.Definitions[definitionOf(v.Capability, kind)], &schema); err != nil || schema.Type != "object" || len(schema.Required) == 0 {
				t.Errorf("%s of %s demands nothing: %v", kind, v.Capability, err)
			}
		}
		answer := v.Output.Valid
		s.expose(v.Capability, func(context.Context, *gatewaytest.Turn) gateway.Answer {
			return gateway.Answer{Body: string(answer)}
		}, gateway.Capability{ID: v.Capability, Input: refTo(v.Capability, "Input"), Output: refTo(v.Capability, "Output")})
		ask := func(parameters json.RawMessage) amptest.Reply {
			return s.send(t, amptest.New("request", "agent-1", v.Capability, amptest.Object{"capability": v.Capability, "parameters": parameters}))
		}
		if r := ask(v.Input.Valid); r.Status != http.StatusOK || r.Message.Message.Payload["status"] != "success" {
			t.Errorf("%s: %d %s", v.Capability, r.Status, r.Text)
		}
		wantFault(t, ask(v.Input.Invalid), http.StatusBadRequest, "INVALID_SCHEMA", "VIOLATIONS")
		answer = v.Output.Invalid
		if r := ask(v.Input.Valid); r.Status != http.StatusOK || r.Message.Message.Payload["status"] != "failed" {
			t.Errorf("%s is answered by %s: %d %s", v.Capability, answer, r.Status, r.Text)
		}
	}
	if len(tried) != 17 || !slices.Equal(tried, ids) || len(known.Definitions) != 2*len(ids) {
		t.Errorf("%d definitions of %q, tried %q", len(known.Definitions), ids, tried)
	}
}

// TestTaxonomyReferences (D-M11): a definition of an agent's own wins, and a reference to a name that
// neither has leaves the schema unchecked.
func TestTaxonomyReferences(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for name, c := range map[string]struct {
		schema string
		status int
	}{
		"own":     {`{"$ref":"#/definitions/TextAnalysisInput","definitions":{"TextAnalysisInput":{"type":"object","required":["words"]}}}`, http.StatusBadRequest},
		"within":  {`{"type":"object","required":["of"],"properties":{"text":{"type":"string"},"of":{"$ref":"#/definitions/TextAnalysisInput"}}}`, http.StatusBadRequest},
		"another": {`{"$ref":"#/definitions/TextAnalysisInput","definitions":{"More":{"type":"object"}}}`, http.StatusOK},
		"unknown": {`{"$ref":"#/definitions/PoetryInput"}`, http.StatusOK},
		"broken":  {`{"$ref":"#/definitions/TextAnalysisInput","definitions":7}`, http.StatusOK},
	} {
		s.expose(name, gatewaytest.Echo, gateway.Capability{ID: "text-analysis", Input: json.RawMessage(c.schema)})
		wantStatus(t, s.send(t, amptest.Request("agent-1", name, "text-analysis", amptest.Object{"text": "hello"})), c.status)
	}
}

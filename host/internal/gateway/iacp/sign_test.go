package iacp_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
)

// bounded gives the partner depot keys of its own table.
func bounded(options map[string]any) func(*iacp.Options) {
	return func(o *iacp.Options) {
		rt := o.Runtime.(*gatewaytest.Runtime)
		rt.AddPartner(gateway.Partner{
			Name: "depot", Tenant: "acme", IDs: []string{"depot-*"}, May: gateway.Rights{gateway.MayAsk, gateway.MayTools}, Timeout: time.Minute, Options: options,
		})
	}
}

// signedBy returns a message with a signature by a key.
func signedBy(t *testing.T, m iacptest.Message, key ed25519.PrivateKey, kid string) iacptest.Message {
	t.Helper()
	// The members of the test are in the order of RFC 8785 already when they are sorted.
	var sorted map[string]any
	if err := json.Unmarshal(m.Text(), &sorted); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(sorted)
	if err != nil {
		t.Fatal(err)
	}
	if m.Metadata == nil {
		m.Metadata = map[string]any{}
	}
	m.Metadata["signature"] = map[string]any{"alg": "EdDSA", "kid": kid, "value": base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, text))}
	return m
}

// TestSignature (I-074, V-I44): a partner with keys signs what it sends; a message that was
// changed, is signed with another key, or not at all, is refused. The hops may change.
func TestSignature(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	s := newSite(t, bounded(map[string]any{"keys": []string{fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","kid":"one","x":%q}`, encode(public))}}))
	c := s.dial(t)
	sign := func(m iacptest.Message, key ed25519.PrivateKey, kid string) iacptest.Message {
		t.Helper()
		return signedBy(t, m, key, kid)
	}
	prior := task("with a priority")
	prior.Metadata = map[string]any{"priority": "high"}
	changed, hopped := sign(task("one"), private, "one"), task("handed on") // whose answer leaves through the outbox
	changed.Payload["more"] = true
	hopped.Metadata = map[string]any{"ack": true}
	hopped = sign(hopped, private, "one")
	hopped.Metadata["hops"] = 2
	for name, m := range map[string]struct {
		m  iacptest.Message
		ok bool
	}{
		"signed":        {sign(task("one"), private, "one"), true},
		"priority":      {sign(prior, private, "one"), true},
		"handed on":     {hopped, true},
		"changed":       {changed, false},
		"another key":   {sign(task("one"), other, "one"), false},
		"another name":  {sign(task("one"), private, "two"), false},
		"not signed":    {task("one"), false},
		"no signature":  {sign(task("one"), private, "one"), false},
		"another party": {sign(iacptest.New("task_request", "shop-1", "echo", map[string]any{}), private, "one"), false},
	} {
		if name == "no signature" {
			m.m.Metadata["signature"].(map[string]any)["value"] = "!"
		}
		if err := c.Send(m.m.Text()); err != nil {
			t.Fatal(err)
		}
		got, err := c.Read()
		if err != nil || m.ok != (got.Type == "task_response" || got.Type == "ack") || !m.ok && got.Payload["error_code"] != "PERMISSION_DENIED" {
			t.Errorf("%s: %s, %v", name, got.Raw, err)
		}
	}
}

// TestPartnerBounds (I-071, I-073): an agent of a partner asks for the tools and declares the
// capabilities of the partner's table, and no others.
func TestPartnerBounds(t *testing.T) {
	t.Parallel()
	s := newSite(t, bounded(map[string]any{"tools": []string{"add"}, "capabilities": []string{"lift"}}))
	s.exposeTool()
	c := s.dial(t)
	for tool, want := range map[string]string{"add": "tool_response", "drop": "error_response", "": "error_response"} {
		m := iacptest.New("tool_request", "depot-1", "tools", map[string]any{"tool_name": tool})
		if got := exchange(t, c, m, want); want == "error_response" && (got.Payload["error_code"] != "PERMISSION_DENIED" || got.Payload["retry_allowed"] != false) {
			t.Errorf("%q: %s", tool, got.Raw)
		}
	}
	for capability, want := range map[string]string{"lift": "agent_register_response", "paint": "error_response"} {
		m := iacptest.New("agent_register", "depot-1", "", map[string]any{"agent_info": map[string]any{"agent_id": "depot-1", "capabilities": []string{capability}}})
		if got := exchange(t, c, m, want); want == "error_response" && !strings.Contains(got.Raw, "paint") {
			t.Errorf("%q: %s", capability, got.Raw)
		}
	}
}

// heard is an agent that hands on what it gets.
func heard(to chan<- gateway.Ask) gatewaytest.Agent {
	return func(_ context.Context, t *gatewaytest.Turn) gateway.Answer {
		to <- t.Ask
		return gateway.Answer{}
	}
}

// TestKnowledge (I-032, I-033, I-038, I-039): what an agent shares, has learned, and what
// happens reach their agent whole, with their type, and nothing is answered.
func TestKnowledge(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	got := make(chan gateway.Ask, 4)
	s.rt.Expose("acme", gateway.ExposedAgent{Swarm: "hive", Name: "echo"}, heard(got))
	c := s.dial(t, "ack")
	for _, m := range []struct {
		kind    string
		payload map[string]any
	}{
		{"context_share", map[string]any{"context_type": "insights", "scope": "global", "data": map[string]any{"a": []any{1.5, nil}}, "relevance_score": 0.85, "tags": []string{"x"}}},
		{"knowledge_update", map[string]any{"update_type": "corrected", "knowledge_domain": "scales", "content": map[string]any{"facts": []string{"17 kg"}}, "confidence": 0.9, "source": "external"}},
		{"event_notification", map[string]any{"event_type": "full", "event_data": map[string]any{"depth": map[string]any{"own": true}}}},
	} {
		exchange(t, c, iacptest.New(m.kind, "depot-1", "echo", m.payload), "ack")
		want, err := json.Marshal(map[string]any{"message_type": m.kind, "payload": m.payload})
		if a := <-got; err != nil || a.Kind != gateway.Tells || a.Body != string(want) || a.Info["type"] != m.kind {
			t.Errorf("%s reaches its agent as %s %s, %v; want %s", m.kind, a.Kind, a.Body, err, want)
		}
	}
	exchange(t, c, iacptest.New("heartbeat", "depot-1", "", map[string]any{}), "heartbeat_ack") // nothing else came
}

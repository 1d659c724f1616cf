package a2a_test

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/a2a"
	"skep/host/internal/gateway/gatewaytest"
	"skep/spec/mail"
)

// newCardKey returns a key that is the same in every run.
func newCardKey(t *testing.T) *a2a.CardKey {
	t.Helper()
	key, err := a2a.NewCardKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestCards: every exposed agent has a card, and the entrypoint also at the host's
// address; it lists skills, bindings and what a caller needs.
func TestCards(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *a2a.Options) { o.PublicURL = "https://hive.example/" })
	calc := gateway.ExposedAgent{Swarm: "hive", Name: "calc", Description: "calculates", Version: "2.1", Entrypoint: true, Capabilities: []gateway.Capability{
		{ID: "add", Description: "adds numbers", Tags: []string{"math"}, Examples: []string{"1+1"}},
	}}
	s.rt.Expose("", calc, gatewaytest.Echo)
	s.rt.Expose("acme", calc, gatewaytest.Echo)
	client := s.server.Client()
	for path, name := range map[string]string{"": "calc", "/a2a/hive/calc": "calc"} {
		card, err := agentcard.NewResolver(client).Resolve(t.Context(), s.server.URL+path)
		if err != nil {
			t.Fatal(err)
		}
		if card.Name != name || card.Version != "2.1" || len(card.Skills) != 1 || card.Skills[0].ID != "add" || card.Skills[0].Tags[0] != "math" || !card.Capabilities.Streaming || card.Capabilities.PushNotifications {
			t.Errorf("%s: %+v", path, card)
		}
		var at []string
		for _, i := range card.SupportedInterfaces {
			at = append(at, fmt.Sprint(i.ProtocolBinding, i.ProtocolVersion, " ", i.URL, " ", i.Tenant))
		}
		want := []string{
			"JSONRPC1.0 https://hive.example/a2a/hive/calc ", "HTTP+JSON1.0 https://hive.example/a2a/hive/calc ", "GRPC1.0 hive.example:443 hive/calc",
			"JSONRPC0.3 https://hive.example/a2a/hive/calc ",
		}
		if !equal(at, want) {
			t.Errorf("%s: interfaces %q, want %q", path, at, want)
		}
		resolver := agentcard.Resolver{Client: client, CardParser: a2av0.NewAgentCardParser()}
		if old, err := resolver.Resolve(t.Context(), s.server.URL+path); err != nil || old.Name != name {
			t.Errorf("%s in version 0.3: %+v, %v", path, old, err)
		}
	}
	extended, err := s.client(t, bindings[0], "calc", token).GetExtendedAgentCard(t.Context(), &sdk.GetExtendedAgentCardRequest{})
	if err != nil || extended.Name != "calc" {
		t.Errorf("the extended card (X-004): %+v, %v", extended, err)
	}
}

// TestHiddenCards: who shows no credential sees the agents that anybody may see, and the
// card of another agent is not found.
func TestHiddenCards(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for path, want := range map[string]int{
		"/.well-known/agent-card.json": 404, "/a2a/hive/echo/.well-known/agent-card.json": 404, "/a2a/keys.json": 404,
	} {
		code, text := s.get(t, s.server.Client(), path)
		if code != want || text != `{"detail":"Not Found"}` {
			t.Errorf("%s: %d %q", path, code, text)
		}
	}
	if code, text := s.get(t, s.http(token), "/a2a/hive/echo/.well-known/agent-card.json"); code != 200 || !strings.Contains(text, `"echo"`) {
		t.Errorf("with a credential: %d %s", code, text)
	}
}

func (s *site) get(t *testing.T, c *http.Client, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.do(t, c, req)
}

// TestSignedCards: a card is signed over its canonical form by a key that the host serves,
// and a changed card does not verify.
func TestSignedCards(t *testing.T) {
	t.Parallel()
	for _, v03 := range []bool{true, false} {
		s := newSite(t, func(o *a2a.Options) { o.CardKey, o.V03 = newCardKey(t), v03 })
		_, text := s.get(t, s.http(token), "/a2a/hive/echo/.well-known/agent-card.json")
		_, keys := s.get(t, s.server.Client(), "/a2a/keys.json")
		if strings.Contains(keys, `"d"`) {
			t.Fatalf("the host shows its private key: %s", keys)
		}
		if err := a2a.VerifyCard([]byte(text), []byte(keys)); err != nil {
			t.Errorf("the card does not verify: %v\n%s", err, text)
		}
		changed := strings.Replace(text, "does echo", "does more", 1)
		if err := a2a.VerifyCard([]byte(changed), []byte(keys)); err == nil {
			t.Error("a changed card verifies")
		}
		var card sdk.AgentCard
		if err := json.Unmarshal([]byte(text), &card); err != nil || len(card.Signatures) != 1 {
			t.Errorf("the card has signatures %+v, %v", card.Signatures, err)
		}
	}
	if text := fmt.Sprintf("%v %+v %#v", newCardKey(t), newCardKey(t), newCardKey(t)); strings.Contains(text, "[0 0") || !strings.Contains(text, "a2a.CardKey(") {
		t.Errorf("a key is printed as %s", text)
	}
}

// TestKeysPinnedLater: a card that was fetched before keys were pinned, or while others were,
// is checked by the keys that are pinned now.
func TestKeysPinnedLater(t *testing.T) {
	t.Parallel()
	s := newShop(t, sdk.TransportProtocolJSONRPC, true)
	_, g, p := newCarrier(t, s.URL)
	wantState(t, g.Carry(t.Context(), p, delivery("m1", mail.Request, "hello")), gateway.Taken, "")
	p.Options = map[string]any{"keys": []string{`{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`}}
	wantState(t, g.Carry(t.Context(), p, delivery("m2", mail.Request, "hello")), gateway.Refused, "no signature")
}

package a2a

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"github.com/go-jose/go-jose/v4"

	"skep/host/internal/gateway"
)

// Limits of a partner's card.
const (
	maxCard = 256 << 10 // bytes
	// cardLife is how long a card is used before it is fetched again.
	cardLife = 5 * time.Minute
)

// Keys of a partner's table that only this gateway reads.
const (
	optionCard = "card" // the address of the card, where url does not lead to it
	optionKeys = "keys" // public keys as JSON Web Keys; the card must be signed by one
)

// cards are the cards of partners, by the partners' names.
type cards struct {
	mu   sync.Mutex
	kept map[string]keptCard
}

// keptCard is a card, the address that it is from, and the keys by which it was checked.
type keptCard struct {
	card  *a2a.AgentCard
	from  string
	keys  []string
	until time.Time
}

// get returns a partner's card, fetched if it is not known or too old.
func (c *cards) get(ctx context.Context, p gateway.Partner) (*a2a.AgentCard, error) {
	from, err := cardURL(p)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	kept := c.kept[p.Name]
	c.mu.Unlock()
	keys := pinnedKeys(p)
	if kept.from == from && slices.Equal(kept.keys, keys) && time.Now().Before(kept.until) {
		return kept.card, nil
	}
	card, err := fetchCard(ctx, p, from)
	if err != nil {
		return nil, fmt.Errorf("the agent card at %s: %w", from, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept[p.Name] = keptCard{card, from, keys, time.Now().Add(cardLife)}
	return card, nil
}

// forget lets the next request fetch the card again.
func (c *cards) forget(partner string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.kept, partner)
}

// cardURL is where a partner's card is.
func cardURL(p gateway.Partner) (string, error) {
	if at, _ := p.Options[optionCard].(string); at != "" {
		return at, nil
	}
	if p.URL == "" {
		return "", gateway.Refuse("partner %s has neither url nor card in [gateways.a2a.partners.%s]", p.Name, p.Name)
	}
	return url.JoinPath(p.URL, a2asrv.WellKnownAgentCardPath)
}

// fetchCard reads a card in either version's form.
func fetchCard(ctx context.Context, p gateway.Partner, from string) (*a2a.AgentCard, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", jsonType)
	resp, err := partnerClient(p).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxCard+1))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode != http.StatusOK:
		return nil, &gateway.StatusError{Code: resp.StatusCode}
	case len(text) > maxCard:
		return nil, gateway.Refuse("it has more than %d bytes", maxCard)
	}
	card, err := a2av0.NewAgentCardParser()(text)
	if err != nil {
		return nil, gateway.Refuse("it is not an agent card: %v", err)
	}
	if card.Name == "" || len(card.SupportedInterfaces) == 0 {
		return nil, gateway.Refuse("it is not an agent card: it has no name or no interfaces")
	}
	return card, checkSignature(p, text, card)
}

// pinnedKeys are the public keys of a partner, of which one must have signed its card.
func pinnedKeys(p gateway.Partner) []string {
	keys, _ := p.Options[optionKeys].([]string)
	return keys
}

// checkSignature refuses a card that no pinned key has signed, if there are such keys.
func checkSignature(p gateway.Partner, text []byte, card *a2a.AgentCard) error {
	pinned := pinnedKeys(p)
	if len(pinned) == 0 {
		return nil
	}
	keys := make([]jose.JSONWebKey, len(pinned))
	for i, key := range pinned {
		if err := json.Unmarshal([]byte(key), &keys[i]); err != nil {
			return gateway.Refuse("keys of [gateways.a2a.partners.%s] has an entry that is no JSON Web Key", p.Name)
		}
	}
	if err := verifyCard(text, card, keys); err != nil {
		return gateway.Refuse("%v", err)
	}
	return nil
}

// connect returns a client of a partner by the best binding that its card has.
func (g *Gateway) connect(ctx context.Context, p gateway.Partner) (*a2aclient.Client, *a2a.AgentCard, error) {
	card, err := g.cards.get(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	h := partnerClient(p)
	client, err := a2aclient.NewFromCard(ctx, card, a2aclient.WithDefaultsDisabled(),
		a2aclient.WithConfig(a2aclient.Config{PreferredTransports: []a2a.TransportProtocol{a2a.TransportProtocolJSONRPC, a2a.TransportProtocolHTTPJSON, a2a.TransportProtocolGRPC}}),
		a2aclient.WithJSONRPCTransport(h), a2aclient.WithRESTTransport(h), withGRPC(h),
		a2av0.WithJSONRPCTransport(a2av0.JSONRPCTransportConfig{Client: h}))
	if err != nil {
		return nil, nil, gateway.Refuse("its card lists no binding that this host speaks: %v", err)
	}
	return client, card, nil
}

// partnerClient returns the client of a partner, with errors for statuses that the
// library has as a text only.
func partnerClient(p gateway.Partner) *http.Client {
	c := *p.Client
	c.Transport = statusTransport{cmp.Or(c.Transport, http.DefaultTransport)}
	return &c
}

type statusTransport struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t statusTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(r)
	if err != nil || resp.StatusCode < 400 || strings.HasPrefix(resp.Header.Get("Content-Type"), jsonType) {
		return resp, err
	}
	_ = resp.Body.Close()
	return nil, &gateway.StatusError{Code: resp.StatusCode}
}

// foreignName is what a card's name may not have in the name of an agent.
var foreignName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// statusRecorder has the status of the last response.
type statusRecorder struct {
	base   http.RoundTripper
	status int
}

// RoundTrip implements [http.RoundTripper].
func (t *statusRecorder) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(r)
	if t.status = 0; err == nil {
		t.status = resp.StatusCode
	}
	return resp, err
}

// checkCredential asks for a task that does not exist: a card is public, a task needs a credential.
func (g *Gateway) checkCredential(ctx context.Context, p gateway.Partner) error {
	own := *p.Client
	seen := &statusRecorder{base: cmp.Or(own.Transport, http.DefaultTransport)}
	own.Transport, p.Client = seen, &own
	client, _, err := g.connect(ctx, p)
	if err != nil {
		return err
	}
	_, err = client.GetTask(ctx, &a2a.GetTaskRequest{ID: a2a.NewTaskID()})
	if errors.Is(err, a2a.ErrUnauthenticated) { // over gRPC
		seen.status = http.StatusUnauthorized
	}
	return gateway.CredentialRefused(Name, p, seen.status)
}

// Discover implements [gateway.Gateway]. A card is one agent, with its skills.
func (g *Gateway) Discover(ctx context.Context, p gateway.Partner) ([]gateway.ForeignAgent, error) {
	g.cards.forget(p.Name)
	card, err := g.cards.get(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := g.checkCredential(ctx, p); err != nil {
		return nil, err
	}
	name := strings.Trim(foreignName.ReplaceAllString(card.Name, "-"), "-")
	agent := gateway.ForeignAgent{Name: cmp.Or(name, "agent"), Description: card.Description, Version: card.Version}
	for _, s := range card.Skills {
		agent.Capabilities = append(agent.Capabilities, gateway.Capability{ID: s.ID, Description: s.Description, Tags: s.Tags, Examples: s.Examples})
	}
	return []gateway.ForeignAgent{agent}, nil
}

// errNoAnswer means that the partner's time for an answer was over.
var errNoAnswer = errors.New("no answer in time")

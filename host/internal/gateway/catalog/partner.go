package catalog

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"skep/host/internal/definition/config"
	"skep/host/internal/gateway"
	"skep/host/internal/turn/egress"
)

// Partner returns a partner of the configuration in force.
func (c *Catalog) Partner(name string) (p gateway.Partner, ok bool) {
	partners, _ := c.inForce()
	p, ok = partners[name]
	return p, ok
}

// Partners lists the partners by name.
func (c *Catalog) Partners() (list []gateway.Partner) {
	partners, _ := c.inForce()
	for _, p := range partners {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b gateway.Partner) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// ReplacePartners makes the partners anew after a reload: attempts for those that are gone end, see
// [Catalog.WhilePartner].
func (c *Catalog) ReplacePartners() { c.inForce() }

// WhilePartner returns a context that ends, with the reason as its cause, when a partner has left the
// configuration or is another tenant's. Call cancel.
func (c *Catalog) WhilePartner(ctx context.Context, p gateway.Partner) (ending context.Context, cancel func()) {
	ending, end := context.WithCancelCause(ctx)
	go func() {
		for {
			partners, replaced := c.inForce()
			if of, ok := partners[p.Name]; !ok || of.Tenant != p.Tenant {
				end(fmt.Errorf("%s is no partner any more", p.Name))
				return
			}
			select {
			case <-replaced:
			case <-ending.Done():
				return
			}
		}
	}()
	return ending, func() { end(nil) }
}

// inForce returns the partners, made anew when a reload has changed the configuration.
// The map is not changed; replaced is closed when another one takes its place.
func (c *Catalog) inForce() (partners map[string]gateway.Partner, replaced <-chan struct{}) {
	cfg := c.opt.Definitions.Config()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of != cfg {
		if c.replaced != nil {
			close(c.replaced)
		}
		c.of, c.partners, c.replaced = cfg, map[string]gateway.Partner{}, make(chan struct{})
		g, _ := tableOf(cfg, c.opt.Gateway)
		for _, p := range g.Partners {
			c.partners[p.Name] = c.partner(g, p)
		}
	}
	return c.partners, c.replaced
}

func (c *Catalog) partner(g config.Gateway, p config.Partner) gateway.Partner {
	made := gateway.Partner{
		Name: p.Name, Tenant: p.Tenant, URL: p.URL, IDs: p.IDs, Agents: p.Agents,
		Timeout: p.Timeout, GiveUp: p.GiveUp, RetryInDoubt: p.RetryInDoubt, Options: map[string]any{},
	}
	if key := p.HMACKey.Reveal(); key != "" {
		made.HMACKey = []byte(key)
	}
	if own, signs := p.Protocol.(interface{ SigningKey() config.Secret }); signs && own.SigningKey() != "" {
		made.SigningKey = []byte(own.SigningKey().Reveal())
	}
	for _, right := range p.May {
		made.May = append(made.May, gateway.Right(right))
	}
	addresses := []string{p.URL}
	if p.Protocol != nil {
		for _, s := range p.Protocol.Settings() {
			made.Options[s.Key] = s.Value()
			if address, isText := s.Value().(string); isText && s.Kind == config.KindURL {
				addresses = append(addresses, address)
			}
		}
	}
	if own, finds := p.Protocol.(interface{ Hosts(config.Partner) []string }); finds {
		addresses = append(addresses, own.Hosts(p)...)
		made.Documents = c.documents(g, p, own.Hosts)
	}
	if u, err := url.Parse(p.URL); err == nil && config.IACPSchemes[u.Scheme] != "" {
		made.Dialer = c.dialer(g, p, config.IACPSchemes[u.Scheme]+"://"+u.Host)
	} else if grants := origins(addresses); len(grants) > 0 {
		made.Client = c.httpClient(g, p, grants)
	}
	return made
}

// documents fetches what the hosts of a partner's ids show to all, where its table allows their
// private addresses. It has no credential.
func (c *Catalog) documents(g config.Gateway, p config.Partner, hosts func(config.Partner) []string) http.RoundTripper {
	grants := origins(hosts(config.Partner{IDs: p.IDs})) // wherever it is called
	if !p.AllowPrivate || len(grants) == 0 {
		return nil
	}
	p.AuthToken, p.APIKey, p.HMACKey = "", "", ""
	policy := c.policy(g, p, grants)
	policy.HTTP2, policy.HTTP3, policy.OfferHTTP2 = false, false, true
	t := &transport{timeout: p.Timeout, maxBody: int64(g.MaxBody), remedy: g.BodyRemedy(), next: c.client.Transport(policy)}
	return t
}

// origins are the hosts of the addresses that a partner's table names, or that its protocol
// finds by it. Nothing else is called with its credential.
func origins(addresses []string) (grants []egress.Grant) {
	for _, address := range addresses {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" {
			continue
		}
		if grant, err := egress.ParseGrant(u.Scheme + "://" + u.Host); err == nil {
			grants = append(grants, grant)
		}
	}
	return grants
}

func (c *Catalog) httpClient(g config.Gateway, p config.Partner, grants []egress.Grant) *http.Client {
	t := &transport{
		header: credential(p), tokens: c.tokens(g, p), timeout: p.Timeout, maxBody: int64(g.MaxBody), remedy: g.BodyRemedy(), next: c.client.Transport(c.policy(g, p, grants)),
	}
	if own, calls := p.Protocol.(interface{ CallsGRPC() bool }); calls && own.CallsGRPC() {
		t.next, t.maxCall = newByKind(c.client, c.policy(g, p, grants)), 2*int64(g.MaxBody)+callRoom
	}
	return t.client()
}

// tokens is where a partner's bearer token comes from, nil where its table has it. The endpoint is
// shown no credential of the partner's.
func (c *Catalog) tokens(g config.Gateway, p config.Partner) *tokenSource {
	own, has := p.Protocol.(interface{ TokenEndpoint() config.OAuth })
	if !has || own.TokenEndpoint().TokenURL == "" {
		return nil
	}
	from := own.TokenEndpoint()
	policy := c.policy(g, p, origins([]string{from.TokenURL}))
	policy.HTTP2, policy.HTTP3, policy.OfferHTTP2 = false, false, true
	policy.Secrets = []egress.Secret{egress.HiddenValue("client_secret", from.ClientSecret.Reveal())}
	if policy.TLS != nil {
		policy.TLS = &tls.Config{RootCAs: policy.TLS.RootCAs}
	}
	t := &transport{timeout: tokenTimeout, maxBody: maxTokenAnswer, next: c.client.Transport(policy)}
	client := t.client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return errTokenRedirect }
	return &tokenSource{client: client, from: from, table: policy.Table}
}

// policy is how a partner may be reached.
func (c *Catalog) policy(g config.Gateway, p config.Partner, grants []egress.Grant) egress.Policy {
	table := "[gateways." + g.Name + ".partners." + p.Name + "]"
	own, chooses := p.Protocol.(interface{ HTTP3(config.Partner) bool })
	return egress.Policy{
		Table: table, Grants: grants,
		AllowPrivate: p.AllowPrivate, PrivateNames: p.AllowPrivate, NoPublicHTTP: true, HTTP2: c.opt.HTTP2, HTTP3: chooses && own.HTTP3(p),
		PrivateKey: "allow_private = true in " + table, TLS: p.TLS,
		Secrets: []egress.Secret{egress.HiddenValue("auth_token", p.AuthToken.Reveal()), egress.HiddenValue("api_key", p.APIKey.Reveal()), egress.HiddenValue("hmac_key", p.HMACKey.Reveal())},
	}
}

// dialer connects to a partner without HTTP, at an address that is written as HTTP has it.
func (c *Catalog) dialer(g config.Gateway, p config.Partner, address string) *gateway.Dialer {
	policy := c.policy(g, p, origins([]string{address}))
	return &gateway.Dialer{
		Dial:  func(ctx context.Context) (net.Conn, error) { return c.client.Dial(ctx, policy, address) },
		Token: p.AuthToken.Reveal, APIKey: p.APIKey.Reveal,
	}
}

// credential is what a partner is shown with each request.
func credential(p config.Partner) http.Header {
	header := http.Header{}
	if p.AuthToken != "" {
		header.Set("Authorization", "Bearer "+p.AuthToken.Reveal())
	}
	if p.APIKey != "" {
		header.Set("X-API-Key", p.APIKey.Reveal())
	}
	return header
}

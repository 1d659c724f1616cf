package amp

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"time"

	"skep/host/internal/gateway"
)

// findWay decides how the message leaves: over an open WebSocket of its recipient, or of the
// partner where that has no address, or else to an address.
func (a *attempt) findWay(ctx context.Context) error {
	if a.written.namesAgent() {
		var err error
		if a.to, err = gateway.RecipientID(a.d.Wrapper.Payload.Recipient().Name); err != nil {
			return err
		}
	}
	return a.findWayTo(ctx, a.to)
}

// findWayTo is findWay for a recipient, which is empty for none that is named.
func (a *attempt) findWayTo(ctx context.Context, agent string) error {
	if err := a.findEndpoint(ctx, agent); err != nil {
		return err
	}
	hasAddress := a.p.URL != "" && a.p.Client != nil
	s, speaks := a.g.sockets.Find(a.caller, agent)
	switch {
	case s != nil && (speaks || !hasAddress && !isQueued(a.p)):
		a.socket = s
	case isQueued(a.p):
		a.queued = true
	case !hasAddress:
		return fmt.Errorf("%s has no WebSocket open, and no url in [gateways.amp.partners.%s]: %w", a.p.Name, a.p.Name, gateway.ErrBusy)
	}
	return nil
}

// findEndpoint replaces where the attempt's message goes by the endpoint of its recipient, if
// that is registered with one (M-028): its gRPC address, or else the one for HTTP.
func (a *attempt) findEndpoint(ctx context.Context, agent string) error {
	r, err := a.g.registered.find(ctx, a.caller, agent)
	address := cmp.Or(r.Endpoints.GRPC, r.Endpoints.Invoke)
	if err != nil || address == "" {
		return err
	}
	if !isOwn(a.p, address) {
		a.p.Client = endpointClient(a.g.EndpointClient, a.p.Timeout, r.Authentication.Credentials)
	}
	options := maps.Clone(a.p.Options)
	if options == nil {
		options = map[string]any{}
	}
	delete(options, bindingOption)
	if r.Endpoints.GRPC != "" {
		options[bindingOption] = grpcBinding
	}
	a.p.URL, a.p.Options = address, options
	return nil
}

// endpointClient returns a client that shows a credential, which is empty for none, and ends
// what takes too long.
func endpointClient(client *http.Client, timeout time.Duration, credential string) *http.Client {
	with := *client
	with.Timeout = timeout
	if credential != "" {
		with.Transport = bearerTransport{client.Transport, credential}
	}
	return &with
}

// bearerTransport adds a credential to each request. The address of an endpoint was checked
// when it was registered, and the client follows no redirect.
type bearerTransport struct {
	next       http.RoundTripper
	credential string
}

// RoundTrip implements [http.RoundTripper].
func (t bearerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set(authorizationHeader, bearerPrefix+t.credential)
	next := t.next
	if next == nil {
		next = http.DefaultTransport
	}
	return next.RoundTrip(req)
}

// registeredAgents are the agents that a partner has registered.
func (g *Gateway) registeredAgents(ctx context.Context, p gateway.Partner) (list []gateway.ForeignAgent, err error) {
	all, err := g.registered.list(ctx, p.Caller())
	for _, r := range all {
		name, nameErr := gateway.AgentName(r.Agent.ID)
		if nameErr != nil {
			continue // no agent of ours could write to it
		}
		list = append(list, gateway.ForeignAgent{Name: name, Version: r.Agent.Version, Capabilities: capabilitiesOfForeign(r.Capabilities)})
	}
	return list, err
}

func capabilitiesOfForeign(declared []described) (list []gateway.Capability) {
	for _, c := range declared {
		list = append(list, gateway.Capability{ID: c.ID, Version: c.Version, Description: c.Description, Input: c.Input, Output: c.Output, Constraints: c.Constraints})
	}
	return list
}

package uamp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/gateway/uamp/envelope"
)

// binding is how the envelope of one attempt reaches a partner, and how the stream with its
// answer is read (U-056, U-057). It is used by one goroutine.
type binding interface {
	// post sends the envelope of an attempt, and sets its sent as soon as the partner has
	// taken it. A refusal that the partner has signed is a [signedRefusal].
	post(ctx context.Context, a *attempt) (posted, error)
	// streamAt resolves the address of a stream that post or an attempt before has returned.
	// It fails for one that the binding cannot read, or that is not the partner's.
	streamAt(address string) (string, error)
	// streamNamed is the address of a stream by its name.
	streamNamed(name string) string
	// read gives the deltas of a stream that r does not have to r.take, until the stream
	// breaks off or r.take fails.
	read(ctx context.Context, r *streamReader, at string) error
	// acknowledge confirms to the partner that all deltas up to d have come (U-062), beside the
	// reading. One that is lost is made good by the next read.
	acknowledge(ctx context.Context, r *streamReader, d envelope.Delta)
	// close gives back what the attempt used.
	close()
}

// optionBinding is the key of a partner's table with the binding by which it is called.
const optionBinding = "binding"

// Bindings of partners, as their tables name them.
const (
	bindingHTTP   = "http"
	bindingSocket = "websocket"
	bindingGRPC   = "grpc"
)

// Types of the services of DID documents (U-033).
const (
	serviceMessages = "UAMPMessages"
	serviceSocket   = "UAMPWebSocket"
	serviceGRPC     = "UAMPGrpc"
	serviceManifest = "UAMPManifest"
)

// bind chooses how a partner is reached: at its url, or where the document of the agent that
// is written to has it (U-034).
func (g *Gateway) bind(ctx context.Context, p gateway.Partner, to string) (binding, error) {
	if p.Client == nil {
		return nil, gateway.Refuse("%s has no url: add it to [gateways.uamp.partners.%s]", p.Name, p.Name)
	}
	kind, base := bindingHTTP, p.URL
	if named, _ := p.Options[optionBinding].(string); named != "" {
		kind = named
	}
	if base == "" {
		var err error
		if kind, base, err = g.findService(ctx, p, to); err != nil {
			return nil, err
		}
	}
	base = strings.TrimSuffix(base, "/")
	switch kind {
	case bindingSocket:
		return &socketBinding{g: g, p: p, key: socketKey{client: p.Client, url: base + socketPath, binding: kind}}, nil
	case bindingGRPC:
		return &socketBinding{g: g, p: p, key: socketKey{client: p.Client, url: base, binding: kind}}, nil
	}
	return &httpBinding{client: p.Client, base: base, partner: p.Name}, nil
}

// services are the bindings in the order in which they are chosen, each with its path.
var services = []struct{ service, binding, path string }{
	{serviceMessages, bindingHTTP, messagesPath},
	{serviceSocket, bindingSocket, socketPath},
	{serviceGRPC, bindingGRPC, ""},
}

// findService finds where an agent of a partner without a url is, by its DID document. It is
// called with the partner's credential, so that must be at the DID's own host.
func (g *Gateway) findService(ctx context.Context, p gateway.Partner, to string) (kind, base string, err error) {
	id, err := did.Parse(to)
	if err != nil || id.Host() == "" {
		return "", "", gateway.Refuse("%.200s names no host: add a url to [gateways.uamp.partners.%s]", to, p.Name)
	}
	d, err := g.proof.resolver.ResolveOver(ctx, p.Documents, to, "", p.Caller().Principal.String())
	if err != nil {
		return "", "", fmt.Errorf("find the address of %s: %w", to, err)
	}
	for _, s := range services {
		endpoint := d.Service(s.service)
		if endpoint == "" {
			continue
		}
		if base, err = baseOf(endpoint, s.path, id.Host()); err != nil {
			return "", "", gateway.Refuse("the %s of %s is %.200q: %v; add a url to [gateways.uamp.partners.%s]", s.service, to, endpoint, err, p.Name)
		}
		return s.binding, base, nil
	}
	return "", "", gateway.Refuse("the document of %s offers no service of UAMP: add a url to [gateways.uamp.partners.%s]", to, p.Name)
}

// baseOf is the address before a path, of a host that is reached by TLS.
func baseOf(endpoint, path, host string) (string, error) {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "wss":
		return "", errors.New("it is no address of https or wss")
	case u.Host != host:
		return "", errors.New("it is not at the host of the DID")
	case u.Path != path:
		return "", fmt.Errorf("its path is not %s", path)
	}
	return "https://" + u.Host, nil
}

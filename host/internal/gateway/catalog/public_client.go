package catalog

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"skep/host/internal/turn/egress"
)

// CheckPublic returns why the client of [NewPublicClient] calls no such address.
func CheckPublic(address string) error {
	if err := egress.CheckURL(address); err != nil {
		return err
	}
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	public, err := egress.ParseGrant(publicHosts)
	if err != nil {
		return err
	}
	if origin, err := egress.ParseGrant(u.Scheme + "://" + u.Host); err != nil || !public.Includes(origin) {
		return fmt.Errorf("%.200q is no name of a public host, reached by https at its port 443", address)
	}
	return nil
}

// publicHosts is the grant of all hosts with a name.
const publicHosts = "https://*"

// PublicBounds bound the requests of a public client.
type PublicBounds struct {
	// Methods are the methods of its requests, at least one.
	Methods []string
	// MaxReply bounds an answer, in bytes.
	MaxReply int64
	// Timeout is the time for a request and its whole answer, 0 for the time of its context alone.
	Timeout time.Duration
	// OfferHTTP2 lets the hosts choose between HTTP/2 and HTTP/1.1.
	OfferHTTP2 bool
	// GRPC lets calls of gRPC go by HTTP/2, with answers of twice MaxReply: a message may be there
	// twice.
	GRPC bool
}

// NewPublicClient returns a client for requests to addresses that callers have chosen: names of
// public hosts over https only, without redirects, credentials and long answers.
func NewPublicClient(network func(*egress.Options), b PublicBounds) (*http.Client, error) {
	anyName, err := egress.ParseGrant(strings.Join(b.Methods, ",") + " " + publicHosts)
	if err != nil {
		return nil, err
	}
	client, policy := newEgress(network), egress.Policy{Table: "[gateways]", Grants: []egress.Grant{anyName}, NoPublicHTTP: true, OfferHTTP2: b.OfferHTTP2}
	t := &transport{timeout: b.Timeout, maxBody: b.MaxReply, next: client.Transport(policy)}
	if b.GRPC {
		t.next, t.maxCall = newByKind(client, policy), 2*b.MaxReply+callRoom
	}
	return t.client(), nil
}

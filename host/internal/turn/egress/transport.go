package egress

import (
	"errors"
	"net/http"
	"strings"

	"skep/abi"
)

// Transport carries requests of the host itself within a policy, over connections to
// checked addresses. It follows no redirect and adds no secret. The caller reads the body,
// so only the header of a response is bounded.
//
// A request with the header Upgrade goes by HTTP/1.1 over a connection of its own, and over TLS
// of the version that the policy wants. The body of a response with the status 101 is the
// connection. A call of gRPC to an http URL goes by HTTP/2 if the policy has that for https.
//
// Each request needs a context with a deadline, or a client with a ConnectTimeout. Errors are an
// *abi.Error with the reasons of [Client.Fetch], or an error of package net/http for a connection
// that broke. It is safe for concurrent use.
func (c *Client) Transport(p Policy) http.RoundTripper { return transport{c, p} }

type transport struct {
	client *Client
	policy Policy
}

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	h, err := t.hop(req)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	resp, err := h.exchange(req)
	var broken *connectError
	if errors.As(err, &broken) {
		return nil, broken.cause
	}
	return resp, err
}

// exchange makes the request on a connection as the policy wants it.
func (h *hop) exchange(req *http.Request) (resp *http.Response, err error) {
	switch {
	case h.policy.HTTP3 && h.target.scheme == "https" && !h.upgrades:
		resp, err = h.sendHTTP3(req)
	case h.isPooled():
		resp, _, err = h.sendPooled(req)
	default:
		resp, _, err = h.sendOnce(req)
	}
	return resp, err
}

func (t transport) hop(req *http.Request) (*hop, error) {
	to, err := parseTarget(req.URL.String())
	if err != nil {
		return nil, fault(abi.CodeInvalid, ReasonRequest, "%v", err)
	}
	h := &hop{
		client: t.client, policy: t.policy, scrub: NewScrubber(t.policy.Secrets...), method: req.Method, target: to, upgrades: req.Header.Get("Upgrade") != "",
	}
	h.clearHTTP2 = t.policy.HTTP2 && to.scheme == "http" && strings.HasPrefix(req.Header.Get("Content-Type"), "application/grpc")
	grant, ok := findGrant(t.policy.Grants, req.Method, to)
	if !ok {
		return nil, h.grantError(ReasonGrant, "")
	}
	h.grant = grant
	return h, nil
}

package egress

import (
	"errors"
	"net/http"

	"skep/abi"
)

// Transport carries requests of the host itself to where a policy lets them go,
// over connections to checked addresses. It follows no redirect and adds no
// secret: what it is given, it sends. Answers are read by the caller as they
// come, so only their header is bounded.
//
// Each request needs a context with a deadline. Errors are an *abi.Error with the
// reasons of [Client.Fetch], but for what package net/http says of a connection
// that broke. It is safe for concurrent use.
func (c *Client) Transport(p Policy) http.RoundTripper { return transport{c, p} }

type transport struct {
	c      *Client
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
	exchange := h.sendAlone
	if t.c.kept != nil {
		exchange = h.sendKept
	}
	resp, _, err := exchange(req)
	var broken *unreached
	if errors.As(err, &broken) {
		return nil, broken.because
	}
	return resp, err
}

func (t transport) hop(req *http.Request) (*hop, error) {
	to, err := parseTarget(req.URL.String())
	if err != nil {
		return nil, fault(abi.CodeInvalid, ReasonRequest, "%v", err)
	}
	h := &hop{c: t.c, policy: t.policy, scrub: newScrubber(t.policy.Secrets), method: req.Method, to: to}
	grant, ok := covering(t.policy.Grants, req.Method, to)
	if !ok {
		return nil, h.ungranted(ReasonGrant, "")
	}
	h.grant = grant
	return h, nil
}

package amp

import (
	"bytes"
	"context"
	"net/http"
	"net/url"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
)

// maxCallback bounds the address of a callback, in bytes.
const maxCallback = 1024

// checkCallback refuses an address that the host does not call: one that is neither on the
// partner's own host nor the name of a public one (M-036, G-055).
func (g *Gateway) checkCallback(c gateway.Caller, callback string) error {
	return g.checkAddress(c, "completion_callback", callback)
}

// checkAddress is checkCallback for an address of another member.
func (g *Gateway) checkAddress(c gateway.Caller, member, address string) error {
	p, err := g.partnerOf(c, member)
	switch {
	case err != nil:
		return err
	case len(address) > maxCallback:
		return message.Faultf(message.InvalidSchema, message.ReasonCallback, "%s has more than %d bytes", member, maxCallback)
	case isOwn(p, address):
		return nil
	}
	if err := g.CheckCallback(address); err != nil {
		return message.Faultf(message.InvalidSchema, message.ReasonCallback, "%s: %v", member, err)
	}
	return nil
}

// isOwn reports whether an address is on the host of the partner's url, whose client calls
// it with the partner's credential.
func isOwn(p gateway.Partner, address string) bool {
	own, err := url.Parse(p.URL)
	if err != nil || p.URL == "" || p.Client == nil {
		return false
	}
	to, err := url.Parse(address)
	return err == nil && to.Scheme == own.Scheme && to.Host == own.Host && to.User == nil
}

// postCallback sends a message to a callback. What is not on the partner's host is shown no
// credential but the signature.
func (g *Gateway) postCallback(ctx context.Context, p gateway.Partner, callback string, text []byte) error {
	client := g.CallbackClient
	if isOwn(p, callback) {
		client = p.Client
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, callback, bytes.NewReader(text))
	if err != nil {
		return gateway.Refuse("the callback %.200q cannot be called: %v", callback, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return gateway.StatusOf(resp)
	}
	return nil
}

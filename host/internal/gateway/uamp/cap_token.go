package uamp

import (
	"fmt"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
)

// optionCapToken is the key of a partner's table with the capability token that it has given.
const optionCapToken = "cap_token"

// grantLife is how long a capability token of ours counts.
const grantLife = 5 * time.Minute

// capToken is the capability token of an envelope (U-042): the partner's own, or one of the
// sender for its recipient.
func (g *Gateway) capToken(p gateway.Partner, e envelope.Envelope) (string, error) {
	if held, err := heldToken(p); held != "" || err != nil {
		return held, err
	}
	key, err := g.Keys.signer(e.From, time.Now())
	if err != nil {
		return "", err
	}
	return key.Grant(seal.Claims{
		Issuer: e.From, Subject: e.From, Audience: e.To, Scope: []string{"uamp:" + string(e.Intent)}, Expires: time.Now().Add(grantLife),
	})
}

// heldToken is the capability token in a partner's table, empty for none. The error for one that
// has expired lets a message wait: an operator can put another one there.
func heldToken(p gateway.Partner) (string, error) {
	secret, _ := p.Options[optionCapToken].(interface{ Reveal() string })
	if secret == nil || secret.Reveal() == "" {
		return "", nil
	}
	token, err := seal.ReadToken(secret.Reveal())
	at := "cap_token of [gateways.uamp.partners." + p.Name + "]"
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %s: %w", gateway.ErrBusy, at, err)
	case !time.Now().Before(token.Expires):
		return "", fmt.Errorf("%w: %s expired at %s: put another one there", gateway.ErrBusy, at, token.Expires.UTC().Format(time.RFC3339))
	}
	return secret.Reveal(), nil
}

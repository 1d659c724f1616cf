package uamp

import (
	"context"
	"errors"
	"time"

	"skep/abi"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
	"skep/host/internal/gateway/wire"
)

// Proof finds out whether an envelope is of the sender that it names, and may be sent by
// its caller, whom the transport has shown. Make one with [Documents.NewProof].
type Proof struct {
	documents    *Documents
	resolver     *did.Resolver
	requireToken bool
	// large bounds the long envelopes whose other canonical form is made.
	large wire.LargeReads
}

// optionKeys is the key of a partner's table with its public keys, JSON Web Keys: with
// them no document is fetched.
const optionKeys = "keys"

// tokenSkew is how far the clocks of issuers of tokens may differ.
const tokenSkew = time.Minute

// NewProof returns a proof that finds the keys of senders with a resolver.
func (d *Documents) NewProof(r *did.Resolver, requireToken bool) *Proof {
	return &Proof{documents: d, resolver: r, requireToken: requireToken}
}

// Check returns why an envelope does not count, as a fault. Nothing is fetched for a
// sender that is not the caller's.
func (p *Proof) Check(ctx context.Context, c gateway.Caller, s envelope.Signed) error {
	if err := p.checkSender(c, s.From); err != nil {
		return err
	}
	if err := p.checkSignature(ctx, c, s); err != nil {
		return err
	}
	return p.checkToken(ctx, c, s)
}

// checkSignature verifies the signature of an envelope whose sender may speak for the
// caller.
func (p *Proof) checkSignature(ctx context.Context, c gateway.Caller, s envelope.Signed) error {
	h, err := seal.ReadHeader(s.Sig)
	if err != nil {
		return faultOf(err)
	}
	keys, err := p.keys(ctx, c, s.From, h.KeyID)
	if err != nil {
		return err
	}
	release, err := p.large.Acquire(ctx, len(s.Received()))
	if err != nil {
		return err
	}
	defer release()
	_, err = seal.Verify(s.Sig, s.Sums, keys)
	return faultOf(err)
}

// checkSender refuses a sender that is not the caller's (U-044). A realm without ids has
// one sender, which has its name.
func (p *Proof) checkSender(c gateway.Caller, from string) error {
	if c.IsUser() {
		return envelope.Faultf(envelope.Unauthorized, "UAMP is for agents: show a credential of role agent")
	}
	own := from == c.Principal.PeerSwarm()
	if partner, _ := p.documents.Runtime.Partner(c.Realm); len(partner.IDs) > 0 {
		own = partner.Owns(from)
	}
	if !own {
		return envelope.Faultf(envelope.Unauthorized, "the sender is not an agent of the caller")
	}
	return nil
}

// keys are the keys of an id of the caller that may have made a signature under a key id:
// those that the partner's table pins, else those of its DID document (U-027, U-032).
func (p *Proof) keys(ctx context.Context, c gateway.Caller, of, keyID string) (list []seal.PublicKey, err error) {
	if keyID != "" && did.OfURL(keyID) != of {
		return nil, envelope.Faultf(envelope.Unauthenticated, "the key %.200q is of another DID than %.200q, which it is to sign for", keyID, of)
	}
	partner, _ := p.documents.Runtime.Partner(c.Realm)
	if pinned, _ := partner.Options[optionKeys].([]string); len(pinned) > 0 {
		for _, text := range pinned {
			k, err := seal.ParseJWK(keyID, []byte(text))
			if err != nil {
				return nil, err
			}
			list = append(list, k)
		}
		return list, nil
	}
	d, err := p.resolver.ResolveOver(ctx, partner.Documents, of, keyID, c.Principal.String())
	return d.Keys, faultOf(err)
}

// checkToken holds the capability token against each recipient here (U-042). It may come
// from the sender, a recipient or the host.
func (p *Proof) checkToken(ctx context.Context, c gateway.Caller, s envelope.Signed) error {
	if s.CapToken == "" {
		if p.requireToken {
			return envelope.Faultf(envelope.Unauthorized, "cap_token is missing, and [gateways.uamp] has require_cap_token")
		}
		return nil
	}
	token, err := seal.ReadToken(s.CapToken)
	if err != nil {
		return faultOf(err)
	}
	keys, err := p.issuerKeys(ctx, c, s.From, token)
	if err != nil {
		return err
	}
	if err := token.Verify(keys); err != nil {
		return faultOf(err)
	}
	host := p.documents.host.String()
	for _, recipient := range s.Recipients() {
		a, here := p.documents.addressOf(recipient)
		if !here {
			continue // it is answered as an unknown one
		}
		if err := token.Check(seal.Use{
			Now: time.Now(), Skew: tokenSkew, Audience: []string{recipient, host}, Issuers: []string{s.From, recipient, host},
			Subject: s.From, Need: "uamp:" + string(s.Intent), Agent: a.agent,
		}); err != nil {
			return faultOf(err)
		}
	}
	return nil
}

// issuerKeys are the keys of a token's issuer, which is the sender or is here.
func (p *Proof) issuerKeys(ctx context.Context, c gateway.Caller, from string, token seal.Token) ([]seal.PublicKey, error) {
	if token.Issuer == from {
		return p.keys(ctx, c, from, token.KeyID)
	}
	if _, here := p.documents.addressOf(token.Issuer); here {
		return p.documents.Keys.published(token.Issuer)
	}
	return nil, faultOf(seal.ForeignIssuer(token.Issuer))
}

// faultOf returns the errors of keys and signatures as the caller may see them: what was
// met on the way to a document stays here.
func faultOf(err error) error {
	switch {
	case errors.Is(err, seal.ErrScope):
		return envelope.Faultf(envelope.Unauthorized, "%v", err)
	case errors.Is(err, seal.ErrSignature), errors.Is(err, seal.ErrToken):
		return envelope.Faultf(envelope.Unauthenticated, "%v", err)
	case errors.Is(err, did.ErrRate):
		return &envelope.Fault{Code: envelope.TooMany, Text: did.ErrRate.Error(), RetryAfter: time.Minute}
	case errors.Is(err, did.ErrInvalid):
		return envelope.Faultf(envelope.Unauthenticated, "the sender has no key here: %v, and no key is pinned for it", err)
	case errors.Is(err, did.ErrUnavailable) && !isDenied(err):
		return &envelope.Fault{Code: envelope.Busy, Text: "the DID document of the sender cannot be fetched now", RetryAfter: did.WaitIn(err)}
	case errors.Is(err, did.ErrUnresolved):
		return unresolved
	}
	return err
}

// isDenied reports whether a request was not sent, as its address is none that may be called.
func isDenied(err error) bool {
	var broken *abi.Error
	return errors.As(err, &broken) && broken.Code == abi.CodeDenied
}

// unresolved is returned for a sender without keys that can be used.
var unresolved = envelope.Faultf(envelope.Unauthenticated, "the DID document of the sender cannot be used")

package amp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
)

// apiKeyHeader carries an API key (M-070, M-074).
const apiKeyHeader = "X-API-Key"

// authorizationHeader carries a key, an issued token or a JSON Web Token (M-070, M-071).
const authorizationHeader = "Authorization"

// bearerPrefix begins the value of the header Authorization.
const bearerPrefix = "Bearer "

// signatureWindow is how far the time of a signed message may be from the time here
// (M-075).
const signatureWindow = 5 * time.Minute

// optionHMACAlone lets a signature prove its sender without another credential.
const optionHMACAlone = "hmac_alone"

// errNoCredential refuses a caller that shows nothing.
var errNoCredential = message.Faultf(message.AuthenticationFailed, message.ReasonCredential, "show a bearer token, an API key, a client certificate or a signature")

// errTwoCredentials refuses a request whose header fields may be of two callers.
var errTwoCredentials = message.Faultf(message.AuthenticationFailed, message.ReasonCredential, "X-API-Key has another credential than Authorization")

// identifyRequest finds the caller by what the request shows besides its body. shown is
// false where that is nothing.
func (g *Gateway) identifyRequest(r *http.Request) (c gateway.Caller, shown bool, err error) {
	if key := r.Header.Get(apiKeyHeader); key != "" {
		if other := r.Header.Get(authorizationHeader); other != "" && other != bearerPrefix+key {
			return c, true, errTwoCredentials
		}
		r.Header.Set(authorizationHeader, bearerPrefix+key)
	}
	if r.Header.Get(authorizationHeader) == "" && (r.TLS == nil || len(r.TLS.PeerCertificates) == 0) {
		return c, false, nil
	}
	c, err = g.identify(r)
	return c, true, err
}

func (g *Gateway) identify(r *http.Request) (gateway.Caller, error) {
	c, err := g.Runtime.Identify(r)
	if errors.Is(err, gateway.ErrDenied) {
		err = message.Faultf(message.AuthenticationFailed, message.ReasonCredential, "the credential is not valid")
	}
	return c, err
}

// identifyMessage finds the caller by the message, where the request shows nothing: by the
// credential in its headers, or by its signature alone (M-073, M-074).
func (g *Gateway) identifyMessage(r *http.Request, in message.Received) (gateway.Caller, error) {
	if secret := in.Headers.Authentication.Secret(); secret != "" {
		r.Header.Set(authorizationHeader, bearerPrefix+secret)
		return g.identify(r)
	}
	if in.Headers.Signature == nil {
		return gateway.Caller{}, errNoCredential
	}
	for _, p := range g.Partners() {
		alone, _ := p.Options[optionHMACAlone].(bool)
		if alone && len(p.HMACKey) > 0 && ownsAgent(p, p.Name, in.Source.Agent) && in.Verify(p.HMACKey) == nil {
			return p.Caller(), nil
		}
	}
	return gateway.Caller{}, message.Faultf(message.AuthenticationFailed, message.ReasonSignature, "the signature proves no sender")
}

// checkCredentials refuses a message with another credential than its request shows.
func checkCredentials(r *http.Request, in message.Received) error {
	secret := in.Headers.Authentication.Secret()
	if shown := r.Header.Get(authorizationHeader); secret != "" && shown != bearerPrefix+secret {
		return message.Faultf(message.AuthenticationFailed, message.ReasonCredential, "headers.authentication has another credential than the request")
	}
	return nil
}

// errUser refuses a caller that is no agent.
var errUser = message.Faultf(message.AuthenticationFailed, message.ReasonForbidden, "AMP is for agents: show a credential of role agent")

// checkProof holds a message against what its realm must prove: its sender is an agent of
// the realm, and it is signed if they share a key, at most so long ago.
func (g *Gateway) checkProof(ctx context.Context, c gateway.Caller, in *message.Received, window time.Duration) error {
	if c.IsUser() {
		return errUser
	}
	p, _ := g.Runtime.Partner(c.Realm)
	if in.Source.Agent != "" {
		if err := checkOwner(c, p, "source.agent_id", in.Source.Agent); err != nil {
			return err
		}
	}
	if len(p.HMACKey) == 0 {
		return nil
	}
	if err := in.Verify(p.HMACKey); err != nil {
		return message.Faultf(message.AuthenticationFailed, message.ReasonSignature, "%v", err)
	}
	if in.ID == "" || in.Timestamp == "" {
		return message.Faultf(message.AuthenticationFailed, message.ReasonSignature, "a signed message needs an id and a timestamp")
	}
	at, err := time.Parse(time.RFC3339, in.Timestamp)
	if err != nil {
		return message.Faultf(message.AuthenticationFailed, message.ReasonSignature, "the timestamp of a signed message is not of RFC 3339: %.100q", in.Timestamp)
	}
	if age := time.Since(at); age <= window && age >= -signatureWindow {
		return nil
	}
	if _, err := g.Runtime.Find(ctx, c, in.ID); !errors.Is(err, gateway.ErrUnknown) {
		return err // nil is a repeat of what was taken in time
	}
	return message.Faultf(message.AuthenticationFailed, message.ReasonExpired, "the timestamp of a signed message is more than %s from the time here", window)
}

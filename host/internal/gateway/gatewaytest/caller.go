package gatewaytest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"

	"skep/host/internal/api/auth"
	"skep/host/internal/gateway"
)

// credential is a token and who has it.
type credential struct {
	caller gateway.Caller
	// ended is closed when the token is revoked.
	ended chan struct{}
}

// User returns a person of a tenant.
func User(tenant, id string) gateway.Caller {
	return gateway.Caller{Principal: auth.Principal{Tenant: tenant, Role: auth.User, ID: id}}
}

// Realm returns a caller that speaks for a realm, with the right to ask.
func Realm(tenant, realm string) gateway.Caller {
	return gateway.Caller{
		Principal: auth.Principal{Tenant: tenant, Role: auth.Agent, ID: realm, Peer: realm},
		Realm:     realm, May: gateway.Rights{gateway.MayAsk},
	}
}

// Admit lets a bearer token in as a caller.
func (rt *Runtime) Admit(token string, c gateway.Caller) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	c.Digest = sha256.Sum256([]byte(token))
	c.Recheck = func(context.Context) bool {
		_, err := rt.Renew(c)
		return err == nil
	}
	rt.callers[token] = &credential{caller: c, ended: make(chan struct{})}
}

// AdmitUnlisted lets a bearer token in as a caller whose credential is on no list, as a
// JSON Web Token is.
func (rt *Runtime) AdmitUnlisted(token string, c gateway.Caller) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.callers[token] = &credential{caller: c, ended: make(chan struct{})}
}

// Renew is gateway.Runtime's. A caller without a token, as one of User, stays.
func (rt *Runtime) Renew(c gateway.Caller) (gateway.Caller, error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	for _, known := range rt.callers {
		if known.caller.Digest == c.Digest && c.Digest != (auth.Digest{}) {
			return known.caller, nil
		}
	}
	if c.Digest != (auth.Digest{}) {
		return c, fmt.Errorf("the credential was revoked: %w", gateway.ErrDenied)
	}
	return c, nil
}

// Revoke ends a token: it is refused from now on, and the requests that it brought end.
func (rt *Runtime) Revoke(token string) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	close(rt.callers[token].ended)
	delete(rt.callers, token)
}

// Identify is gateway.Runtime's; it reads the bearer token.
func (rt *Runtime) Identify(r *http.Request) (gateway.Caller, error) {
	rt.mu.Lock()
	err := rt.failure("Identify")
	rt.mu.Unlock()
	if err != nil {
		return gateway.Caller{}, err
	}
	known, ok := rt.credential(r)
	if !ok {
		return gateway.Caller{}, fmt.Errorf("no valid credential: %w", gateway.ErrDenied)
	}
	return known.caller, nil
}

func (rt *Runtime) credential(r *http.Request) (known *credential, ok bool) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	rt.mu.Lock()
	defer rt.mu.Unlock()
	known, ok = rt.callers[token]
	return known, ok
}

package gatewaytest

import (
	"fmt"
	"net/http"
	"strings"

	"skep/host/internal/api/auth"
	"skep/host/internal/gateway"
)

// credential is a token and who has it.
type credential struct {
	caller gateway.Caller
	ended  chan struct{}
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
	ended := make(chan struct{})
	c.Ended = ended
	rt.callers[token] = &credential{caller: c, ended: ended}
}

// Revoke ends a token: it is refused from now on, and its Ended is closed.
func (rt *Runtime) Revoke(token string) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	close(rt.callers[token].ended)
	delete(rt.callers, token)
}

// Identify is gateway.Runtime's; it reads the bearer token.
func (rt *Runtime) Identify(r *http.Request) (gateway.Caller, error) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	rt.mu.Lock()
	defer rt.mu.Unlock()
	known, ok := rt.callers[token]
	if !ok {
		return gateway.Caller{}, fmt.Errorf("no valid credential: %w", gateway.ErrDenied)
	}
	return known.caller, nil
}

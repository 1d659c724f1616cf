package host

import (
	"context"

	"skep/host/internal/auth"
	"skep/host/internal/rest"
	"skep/host/internal/swarm"
)

// eraser erases tenants of a host that runs.
type eraser struct {
	rt     *swarm.Runtime
	tokens *auth.Tokens
	defs   *definitions
}

var _ rest.Eraser = eraser{}

// Erase stops what goes on of a tenant and removes what is kept of it.
func (e eraser) Erase(ctx context.Context, tenant string) error {
	if err := e.rt.Erase(ctx, tenant); err != nil {
		return err
	}
	e.tokens.Forget(tenant)
	return e.defs.forget(tenant)
}

package host

import (
	"context"
	"errors"

	"skep/host/internal/rest"
	"skep/host/internal/swarm"
)

// eraser erases tenants of a host that runs.
type eraser struct {
	rt   *swarm.Runtime
	defs *definitions
}

var _ rest.Eraser = eraser{}

// Erase stops what goes on of a tenant and removes what is kept of it. The store
// tells when its tokens have to go.
func (e eraser) Erase(ctx context.Context, tenant string) error {
	if err := e.rt.Erase(ctx, tenant); err != nil {
		return err
	}
	return errors.Join(e.defs.forget(context.WithoutCancel(ctx), tenant), eraseFiles(e.defs.current().files, tenant))
}

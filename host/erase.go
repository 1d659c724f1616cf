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
// tells when its tokens have to go. Files are the last: an erasure that ended before
// them can be asked for again, when nothing else is left.
func (e eraser) Erase(ctx context.Context, tenant string) error {
	err := e.rt.Erase(ctx, tenant)
	if err != nil && !errors.Is(err, swarm.ErrNotFound) {
		return err
	}
	had, failed := eraseFiles(e.defs.current().files, tenant)
	if err != nil && (had || failed != nil) {
		err = nil
	}
	return errors.Join(err, e.defs.forget(context.WithoutCancel(ctx), tenant), failed)
}

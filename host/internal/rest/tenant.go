package rest

import (
	"context"
	"net/http"
)

// Eraser erases tenants while the host runs. It is safe for concurrent use.
type Eraser interface {
	// Erase returns when nothing is kept of the tenant any more. Refusals are
	// *swarm.Refusal, whose text callers are shown.
	Erase(ctx context.Context, tenant string) error
}

// noEraser erases none.
type noEraser struct{}

func (noEraser) Erase(context.Context, string) error {
	return newFault(http.StatusServiceUnavailable, "this host erases no tenant while it runs")
}

// eraseTenant is POST /skep/v1/tenants/{tenant}/erase. It is answered when it is
// done, which takes as long as there is something to remove.
func (c *call) eraseTenant() error {
	tenant := c.r.PathValue("tenant")
	err := c.h.opt.Tenants.Erase(c.ctx(), tenant)
	if err := c.did("tenant.erase", tenant, err); err != nil {
		return err
	}
	return c.reply(struct {
		Tenant string `json:"tenant"`
		Erased bool   `json:"erased"`
	}{tenant, true})
}

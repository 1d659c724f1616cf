package rest

import (
	"context"
	"net/http"
)

// TenantEraser erases tenants while the host runs. It is safe for concurrent use.
type TenantEraser interface {
	// Erase returns when nothing of the tenant is stored any more. Refusals are
	// *swarm.Refusal; callers see their text.
	Erase(ctx context.Context, tenant string) error
}

// noEraser refuses.
type noEraser struct{}

func (noEraser) Erase(context.Context, string) error {
	return newFault(http.StatusServiceUnavailable, "this host erases no tenant while it runs")
}

// eraseTenant is POST /skep/v1/tenants/{tenant}/erase. It answers when the
// erasure is complete.
func (c *call) eraseTenant() error {
	tenant := c.r.PathValue("tenant")
	err := c.h.opt.Tenants.Erase(c.ctx(), tenant)
	if err := c.auditAct("tenant.erase", tenant, err); err != nil {
		return err
	}
	return c.reply(struct {
		Tenant string `json:"tenant"`
		Erased bool   `json:"erased"`
	}{tenant, true})
}

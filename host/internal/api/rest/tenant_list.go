package rest

import (
	"skep/host/internal/api/auth"
	"skep/host/internal/swarm"
)

// tenantUse is what a tenant stores, and uses of its quotas.
type tenantUse struct {
	Tenant string     `json:"tenant"`
	Stored storedUse  `json:"stored"`
	Quota  []quotaUse `json:"quota"`
}

func newTenantUse(t swarm.TenantQuotaUse) tenantUse {
	use := tenantUse{t.Tenant, storedUse{max(0, t.Bytes), max(0, t.Tasks)}, []quotaUse{}}
	for _, one := range t.Quota {
		use.Quota = append(use.Quota, newQuotaUse(one))
	}
	return use
}

// listTenants is GET /skep/v1/tenants: for admins their own, for operators all.
func (c *call) listTenants() error {
	limit, err := c.intParam("limit", 100, 1, 1000)
	if err != nil {
		return err
	}
	after, err := c.param("after")
	if err != nil {
		return err
	}
	uses, more, err := c.visibleTenants(after, int(limit))
	if err != nil {
		return err
	}
	list, next := []tenantUse{}, ""
	for _, one := range uses {
		list = append(list, newTenantUse(one))
	}
	if more {
		next = list[len(list)-1].Tenant
	}
	return c.reply(struct {
		Tenants   []tenantUse `json:"tenants"`
		Next      *string     `json:"next"`
		SpeaksFor string      `json:"speaks_for"`
	}{list, textOrNull(next), "store"})
}

// visibleTenants lists the tenants whose use the caller sees, by name.
func (c *call) visibleTenants(after string, limit int) (list []swarm.TenantQuotaUse, more bool, err error) {
	if c.w.who.Role == auth.Operator {
		return c.h.usage.TenantUses(c.ctx(), after, limit)
	}
	own := c.instanceKey().Tenant
	if own <= after {
		return nil, false, nil
	}
	use, err := c.h.usage.QuotaUse(c.ctx(), own)
	return []swarm.TenantQuotaUse{use}, false, err
}

package rest

import (
	"slices"

	"skep/host/internal/api/auth"
)

// tenantUse is what a tenant stores, and uses of its quotas.
type tenantUse struct {
	Tenant string     `json:"tenant"`
	Stored storedUse  `json:"stored"`
	Quota  []quotaUse `json:"quota"`
}

func (c *call) tenantUse(tenant string) (tenantUse, error) {
	kept, quota, err := c.h.usage.QuotaUse(c.ctx(), tenant)
	if err != nil {
		return tenantUse{}, err
	}
	use := tenantUse{tenant, storedUse{max(0, kept.Bytes), max(0, kept.Tasks)}, []quotaUse{}}
	for _, one := range quota {
		use.Quota = append(use.Quota, newQuotaUse(one))
	}
	return use, nil
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
	names, err := c.visibleTenants()
	if err != nil {
		return err
	}
	first, found := slices.BinarySearch(names, after)
	if found {
		first++
	}
	page, next := names[first:], ""
	if len(page) > int(limit) {
		page = page[:limit]
		next = page[limit-1]
	}
	list := []tenantUse{}
	for _, tenant := range page {
		use, err := c.tenantUse(tenant)
		if err != nil {
			return err
		}
		list = append(list, use)
	}
	return c.reply(struct {
		Tenants   []tenantUse `json:"tenants"`
		Next      *string     `json:"next"`
		SpeaksFor string      `json:"speaks_for"`
	}{list, textOrNull(next), "store"})
}

// visibleTenants are the names of the tenants whose use the caller sees, in order.
func (c *call) visibleTenants() ([]string, error) {
	if c.w.who.Role == auth.Operator {
		return c.h.usage.TenantNames(c.ctx())
	}
	return []string{c.instanceKey().Tenant}, nil
}

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// TenantUse is what a tenant stores, and uses of its quotas.
type TenantUse struct {
	Tenant string `json:"tenant"`
	Stored struct {
		Bytes int64 `json:"bytes"`
		Tasks int64 `json:"tasks"`
	} `json:"stored"`
	Quota []QuotaUse `json:"quota"`
}

// Tenants lists the tenants of the host's file and those that keep anything, by name. It takes an
// operator; an admin gets the own tenant.
func (c *Client) Tenants(ctx context.Context) (list []TenantUse, err error) {
	for after := ""; ; {
		var page struct {
			Tenants []TenantUse `json:"tenants"`
			Next    *string     `json:"next"`
		}
		path := "/skep/v1/tenants?" + url.Values{"limit": {"1000"}, "after": {after}}.Encode()
		if _, err := c.do(ctx, call{method: http.MethodGet, path: path}, &page); err != nil {
			return nil, err
		}
		list = append(list, page.Tenants...)
		if page.Next == nil {
			return list, nil
		}
		if *page.Next <= after {
			return nil, fmt.Errorf("client: the page of tenants after %q names %q as the next", after, *page.Next)
		}
		after = *page.Next
	}
}

// EraseTenant removes all that a running host keeps of a tenant and destroys its
// keys; it returns when that is done. It takes an operator.
func (c *Client) EraseTenant(ctx context.Context, tenant string) error {
	var ignored json.RawMessage
	path := "/skep/v1/tenants/" + url.PathEscape(tenant) + "/erase"
	_, err := c.do(ctx, call{method: http.MethodPost, path: path}, &ignored)
	return err
}

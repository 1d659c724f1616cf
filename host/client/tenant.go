package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// EraseTenant removes all that a running host keeps of a tenant and destroys its
// keys; it returns when that is done. It takes an operator.
func (c *Client) EraseTenant(ctx context.Context, tenant string) error {
	var ignored json.RawMessage
	path := "/skep/v1/tenants/" + url.PathEscape(tenant) + "/erase"
	_, err := c.do(ctx, call{method: http.MethodPost, path: path}, &ignored)
	return err
}

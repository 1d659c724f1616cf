package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// ReleaseAgent takes an agent of a tenant out of quarantine; an empty tenant is
// the caller's own. It takes an operator.
func (c *Client) ReleaseAgent(ctx context.Context, tenant, agent string) error {
	path := "/skep/v1/agents/" + url.PathEscape(agent) + "/release"
	if tenant != "" {
		path += "?tenant=" + url.QueryEscape(tenant)
	}
	var ignored json.RawMessage
	_, err := c.do(ctx, call{method: http.MethodPost, path: path, again: true}, &ignored)
	return err
}

package client

import (
	"net/http"
	"testing"
)

// TestTenants: the pages of tenants are one list, and a page that does not go on ends it with an error.
func TestTenants(t *testing.T) {
	t.Parallel()
	pages := map[string]string{
		"":  `{"tenants":[{"tenant":"a","quota":[]},{"tenant":"b","quota":[]}],"next":"b"}`,
		"b": `{"tenants":[{"tenant":"c","quota":[]}],"next":null}`,
	}
	c := wired(t, Options{}, func(r *http.Request) (*http.Response, error) {
		return response(http.StatusOK, nil, pages[r.URL.Query().Get("after")]), nil
	})
	list, err := c.Tenants(t.Context())
	if err != nil || len(list) != 3 || list[2].Tenant != "c" {
		t.Errorf("%+v, %v", list, err)
	}
	pages["b"] = `{"tenants":[],"next":"b"}`
	if list, err := c.Tenants(t.Context()); err == nil {
		t.Errorf("a page that is its own next: %+v", list)
	}
}

package rest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/api/rest"
)

// One tenant cannot take all event streams, however many principals it has.
func TestTenantsShareStreams(t *testing.T) {
	t.Parallel()
	if first, second := rest.StreamShares(1000, true); first != 500 || second != 250 {
		t.Errorf("%d and %d of 1000", first, second)
	}
	if alone, _ := rest.StreamShares(1000, false); alone != 1000 {
		t.Errorf("a tenant alone has %d of 1000", alone)
	}
}

// The principals of one tenant share a rate, and leave another tenant's alone.
func TestTenantsHaveARate(t *testing.T) {
	t.Parallel()
	api := rest.New(failingRuntime{}, byName{}, rest.Options{Swarm: "hive", TenantRate: auth.Rate{Requests: 3, Per: time.Hour}})
	for i, c := range []struct {
		token string
		want  int
	}{{"first/a", 200}, {"first/b", 200}, {"first/c", 200}, {"first/d", 429}, {"first/a", 429}, {"second/a", 200}} {
		if a := serve(t, api, request{path: "/skep/v1/version", token: c.token}); a.status != c.want {
			t.Errorf("call %d: %d %s, want %d", i, a.status, a.body, c.want)
		}
	}
}

// byName takes a token for the tenant and name of a user.
type byName struct{}

func (byName) Authenticate(_ context.Context, token string) (auth.Principal, error) {
	tenant, id, _ := strings.Cut(token, "/")
	return auth.Principal{Tenant: tenant, Role: auth.User, ID: id}, nil
}

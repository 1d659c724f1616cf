package rest_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/api/rest"
	"skep/host/internal/swarm"
)

// A refusal with a retry time has a Retry-After, rounded up to a second.
func TestRetryAfterOfAQuota(t *testing.T) {
	t.Parallel()
	for retry, want := range map[time.Duration]string{0: "5", 1500 * time.Millisecond: "2", time.Hour: "3600"} {
		full := &swarm.Refusal{Kind: swarm.ErrLimit, Text: `tenant "acme" has enough`, Retry: retry}
		h := rest.New(failingRuntime{err: full}, newKeys(t), rest.Options{Swarm: "hive"})
		a := serve(t, h, request{method: "POST", path: "/message", body: `{"body":"x"}`})
		if a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != want || a.body != detail(full.Text) {
			t.Errorf("retry %v: %d %q %s, want 429 %q", retry, a.status, a.header.Get("Retry-After"), a.body, want)
		}
	}
}

// What the host says of itself is not for the admins of some tenant to set.
func TestHealthIsOfTheHost(t *testing.T) {
	t.Parallel()
	keys, err := auth.NewKeys([]auth.Key{
		auth.NewKey(auth.Principal{Tenant: "acme", Role: auth.Admin, ID: "ada"}, adminToken),
		auth.NewKey(auth.Principal{Tenant: swarm.DefaultTenant, Role: auth.Admin, ID: "ada"}, operatorToken),
	})
	if err != nil {
		t.Fatal(err)
	}
	h := rest.New(failingRuntime{}, keys, rest.Options{Swarm: "hive"})
	for token, want := range map[string]int{adminToken: http.StatusUnauthorized, operatorToken: http.StatusOK} {
		q := request{method: "POST", path: "/health", token: token, body: `{"status":"degraded"}`}
		if a := serve(t, h, q); a.status != want {
			t.Errorf("an admin's health: %d %s, want %d", a.status, a.body, want)
		}
	}
}

// broom is an eraser for tests that records its calls.
type broom struct{ asked *[]string }

func (b broom) Erase(_ context.Context, tenant string) error {
	if b.asked != nil {
		*b.asked = append(*b.asked, tenant)
	}
	switch tenant {
	case "acme":
		return nil
	case "busy":
		return &swarm.Refusal{Kind: swarm.ErrConflict, Text: "tenant 'busy' is being erased already"}
	}
	return &swarm.Refusal{Kind: swarm.ErrNotFound, Text: "tenant '" + tenant + "' keeps nothing"}
}

// Erasing is for operators; an admin is one of its own tenant only.
func TestEraseTenant(t *testing.T) {
	t.Parallel()
	var asked []string
	h := rest.New(failingRuntime{}, newKeys(t), rest.Options{Swarm: "hive", Tenants: broom{&asked}})
	none := rest.New(failingRuntime{}, newKeys(t), rest.Options{Swarm: "hive"})
	for _, c := range []struct {
		host   http.Handler
		tenant string
		token  string
		status int
		body   string
	}{
		{h, "acme", operatorToken, 200, `{"tenant":"acme","erased":true}`},
		{h, "busy", operatorToken, 409, detail("tenant 'busy' is being erased already")},
		{h, "nobody", operatorToken, 404, detail("tenant 'nobody' keeps nothing")},
		{h, "acme", adminToken, 401, ""},
		{h, "acme", aliceToken, 401, ""},
		{none, "acme", operatorToken, 503, detail("this host erases no tenant while it runs")},
	} {
		a := serve(t, c.host, request{method: "POST", path: "/skep/v1/tenants/" + c.tenant + "/erase", token: c.token})
		if a.status != c.status || c.body != "" && strings.TrimSpace(a.body) != c.body {
			t.Errorf("erase %s as %s: %d %s", c.tenant, c.token, a.status, a.body)
		}
	}
	if want := []string{"acme", "busy", "nobody"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

// A tenant that is being erased gets a 503.
func TestPostWhileErasing(t *testing.T) {
	t.Parallel()
	h := rest.New(failingRuntime{err: fmt.Errorf("store: %w", swarm.ErrErasing)}, newKeys(t), rest.Options{Swarm: "hive"})
	a := serve(t, h, request{method: "POST", path: "/message", body: `{"body":"x"}`})
	if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") != "5" || !strings.Contains(a.body, "being erased") {
		t.Errorf("%d %q %s", a.status, a.header.Get("Retry-After"), a.body)
	}
}

package rest_test

import (
	"net/http"
	"testing"
	"time"

	"skep/host/internal/auth"
	"skep/host/internal/rest"
	"skep/host/internal/swarm"
)

// A refusal that knows when to come again says so, rounded up to a second.
func TestRetryAfterOfAQuota(t *testing.T) {
	t.Parallel()
	for retry, want := range map[time.Duration]string{0: "5", 1500 * time.Millisecond: "2", time.Hour: "3600"} {
		full := &swarm.Refusal{Kind: swarm.ErrLimit, Text: `tenant "acme" has enough`, Retry: retry}
		h := rest.New(broken{err: full}, newKeys(t), rest.Options{Swarm: "hive"})
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
	h := rest.New(broken{}, keys, rest.Options{Swarm: "hive"})
	for token, want := range map[string]int{adminToken: http.StatusUnauthorized, operatorToken: http.StatusOK} {
		q := request{method: "POST", path: "/health", token: token, body: `{"status":"degraded"}`}
		if a := serve(t, h, q); a.status != want {
			t.Errorf("an admin's health: %d %s, want %d", a.status, a.body, want)
		}
	}
}

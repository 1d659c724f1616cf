package rest_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/api/rest"
)

// Invalid tokens are limited, and valid ones with them; a token that was valid
// from the address before still works.
func TestAuthThrottle(t *testing.T) {
	t.Parallel()
	ears := &auditRecorder{}
	h := newTestHost(t, func(h *testHost) {
		h.opt.AuthFailures, h.opt.Audit = auth.Rate{Requests: 3, Per: time.Hour}, ears
	})
	if a := h.do(request{path: "/whoami"}); a.status != 200 {
		t.Fatal(a)
	}
	for i := range 3 {
		if a := h.do(request{path: "/whoami", token: fmt.Sprint("guess", i)}); a.status != 401 {
			t.Fatal(a)
		}
	}
	for _, token := range []string{"guess", bobToken} {
		a := h.do(request{path: "/whoami", token: token})
		if a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != "1200" {
			t.Errorf("%s: %d %v", token, a.status, a.header)
		}
	}
	if a := h.do(request{path: "/whoami"}); a.status != 200 {
		t.Errorf("alice: %d %s", a.status, a.body)
	}
	if got := strings.Join(ears.recorded(), "\n"); strings.Count(got, "too many wrong credentials") != 2 {
		t.Error(got)
	}
}

// A token that no backend could check is not remembered as valid.
func TestAuthThrottleInOutage(t *testing.T) {
	t.Parallel()
	h := &flakyAuthenticator{}
	api := rest.New(failingRuntime{}, h, rest.Options{Swarm: "hive", AuthFailures: auth.Rate{Requests: 2, Per: time.Hour}})
	h.down.Store(true)
	for i := range 5 {
		if a := serve(t, api, request{path: "/skep/v1/version", token: fmt.Sprint("guess", i)}); a.status != 503 {
			t.Errorf("guess %d in the outage: %d %s", i, a.status, a.body)
		}
	}
	h.down.Store(false)
	for i, want := range []int{401, 401, 429, 429, 429} {
		if a := serve(t, api, request{path: "/skep/v1/version", token: fmt.Sprint("guess", i)}); a.status != want {
			t.Errorf("guess %d after it: %d %s, want %d", i, a.status, a.body, want)
		}
	}
}

// flakyAuthenticator refuses every token, or is down.
type flakyAuthenticator struct{ down atomic.Bool }

func (f *flakyAuthenticator) Authenticate(ctx context.Context, token string) (auth.Principal, error) {
	if f.down.Load() {
		return unavailableAuthenticator{}.Authenticate(ctx, token)
	}
	return auth.Principal{}, auth.ErrUnknown
}

// Calls that cannot be authenticated count for their address, as unknown tokens
// do.
func TestOutageIsLimited(t *testing.T) {
	t.Parallel()
	api := rest.New(failingRuntime{}, unavailableAuthenticator{}, rest.Options{Swarm: "hive", Rate: auth.Rate{Requests: 2, Per: time.Hour}})
	for i, want := range []int{503, 503, 429} {
		if a := serve(t, api, request{path: "/whoami", token: fmt.Sprint("t", i)}); a.status != want {
			t.Errorf("call %d: %d %s", i, a.status, a.body)
		}
	}
}

// unavailableAuthenticator is always down.
type unavailableAuthenticator struct{}

func (unavailableAuthenticator) Authenticate(context.Context, string) (auth.Principal, error) {
	return auth.Principal{}, &auth.Unavailable{Backend: "[auth.jwt]", Err: fmt.Errorf("dial: secret place"), Retry: 1500 * time.Millisecond}
}

func TestAuthUnavailable(t *testing.T) {
	t.Parallel()
	ears := &auditRecorder{}
	h := rest.New(failingRuntime{}, unavailableAuthenticator{}, rest.Options{Swarm: "hive", Audit: ears, AuthFailures: auth.Rate{Requests: 1, Per: time.Hour}})
	for range 3 {
		a := serve(t, h, request{path: "/whoami"})
		if a.status != 503 || a.header.Get("Retry-After") != "2" || strings.Contains(a.body, "secret") || !strings.Contains(a.body, "[auth.jwt]") {
			t.Errorf("%d %v %s", a.status, a.header, a.body)
		}
	}
	if got := ears.recorded(); len(got) != 3 || !strings.Contains(got[0], "secret place") {
		t.Errorf("%q", got)
	}
}

package rest_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/auth"
	"skep/host/internal/rest"
)

// Guessing is slowed, even when the guess would be right; who was right from
// the same address goes on.
func TestGuessing(t *testing.T) {
	t.Parallel()
	ears := &ears{}
	h := newHive(t, func(h *hive) {
		h.opt.Guess, h.opt.Audit = auth.Rate{Requests: 3, Per: time.Hour}, ears
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
	if got := strings.Join(ears.heard(), "\n"); strings.Count(got, "too many wrong credentials") != 2 {
		t.Error(got)
	}
}

// A token that nobody could judge is not remembered as right.
func TestGuessingInOutage(t *testing.T) {
	t.Parallel()
	h := &flaky{}
	api := rest.New(broken{}, h, rest.Options{Swarm: "hive", Guess: auth.Rate{Requests: 2, Per: time.Hour}})
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

// flaky is an authority that knows nobody, when it answers.
type flaky struct{ down atomic.Bool }

func (f *flaky) Authenticate(ctx context.Context, token string) (auth.Principal, error) {
	if f.down.Load() {
		return mute{}.Authenticate(ctx, token)
	}
	return auth.Principal{}, auth.ErrUnknown
}

// Those whom nobody can judge count for their address, as strangers do.
func TestOutageIsLimited(t *testing.T) {
	t.Parallel()
	api := rest.New(broken{}, mute{}, rest.Options{Swarm: "hive", Rate: auth.Rate{Requests: 2, Per: time.Hour}})
	for i, want := range []int{503, 503, 429} {
		if a := serve(t, api, request{path: "/whoami", token: fmt.Sprint("t", i)}); a.status != want {
			t.Errorf("call %d: %d %s", i, a.status, a.body)
		}
	}
}

// mute is an authority that does not answer.
type mute struct{}

func (mute) Authenticate(context.Context, string) (auth.Principal, error) {
	return auth.Principal{}, &auth.Unavailable{Authority: "[auth.jwt]", Err: fmt.Errorf("dial: secret place"), Retry: 1500 * time.Millisecond}
}

func TestNoAuthority(t *testing.T) {
	t.Parallel()
	ears := &ears{}
	h := rest.New(broken{}, mute{}, rest.Options{Swarm: "hive", Audit: ears, Guess: auth.Rate{Requests: 1, Per: time.Hour}})
	for range 3 {
		a := serve(t, h, request{path: "/whoami"})
		if a.status != 503 || a.header.Get("Retry-After") != "2" || strings.Contains(a.body, "secret") || !strings.Contains(a.body, "[auth.jwt]") {
			t.Errorf("%d %v %s", a.status, a.header, a.body)
		}
	}
	if got := ears.heard(); len(got) != 3 || !strings.Contains(got[0], "secret place") {
		t.Errorf("%q", got)
	}
}

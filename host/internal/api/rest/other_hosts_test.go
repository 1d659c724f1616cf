package rest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/api/rest"
	"skep/host/internal/swarm"
)

// oneOwner is a host that works on all tasks.
type oneOwner string

func (o oneOwner) Owner(swarm.TaskKey) (url string, ok bool) { return string(o), true }
func (oneOwner) Changed() <-chan struct{}                    { return nil }

// hopOf is a request with the proof that another host has for a path.
func hopOf(t *testing.T, o *rest.OtherHosts, q request, path string) request {
	t.Helper()
	asked := q
	asked.path = path
	r, err := buildRequest(t.Context(), "http://host.example", asked)
	if err != nil {
		t.Fatal(err)
	}
	q.header = http.Header{"Skep-Hop": {o.Proof(r, time.Now())}}
	return q
}

// TestHopWithoutToken: tokens that one host knows and another does not cost nobody else his way
// between them. Without the proof of this very request they count as guesses.
func TestHopWithoutToken(t *testing.T) {
	t.Parallel()
	others := rest.NewOtherHosts(oneOwner(""), []byte("a key of hosts"), time.Minute)
	h := newTestHost(t, func(h *testHost) {
		h.opt.AuthFailures, h.opt.OtherHosts = auth.Rate{Requests: 3, Per: time.Hour}, others
	})
	for i := range 6 {
		q := request{path: "/whoami", token: fmt.Sprint("of-one-host", i)}
		if a := h.do(hopOf(t, others, q, q.path)); a.status != http.StatusUnauthorized {
			t.Fatal(i, a)
		}
	}
	for i, want := range []int{401, 401, 401, 429} {
		q := request{path: "/whoami", token: fmt.Sprint("guess", i)}
		if a := h.do(hopOf(t, others, q, "/status")); a.status != want {
			t.Errorf("guess %d with the proof of another request: %v", i, a)
		}
	}
	q := request{path: "/whoami"}
	if a := h.do(hopOf(t, others, q, q.path)); a.status != http.StatusOK {
		t.Error("a caller through another host:", a)
	}
}

// TestUnreachableOwner: a request does not wait for ever for a host that the others count with, but
// that this one cannot connect to.
func TestUnreachableOwner(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const wait, dialTime, most = 500 * time.Millisecond, 150 * time.Millisecond, 20
	dials := 0
	others := rest.NewOtherHosts(oneOwner("http://host.example"), []byte("a key of hosts"), wait)
	others.DialBy(func(context.Context, string, string) (net.Conn, error) {
		if dials++; dials > most {
			cancel()
		}
		time.Sleep(dialTime)
		return nil, errors.New("no way")
	})
	elsewhere := &swarm.Elsewhere{Task: swarm.TaskKey{Task: "t"}}
	h := rest.New(failingRuntime{err: elsewhere}, newKeys(t), rest.Options{Swarm: "hive", OtherHosts: others})
	r, err := buildRequest(ctx, "http://hive.example", request{path: "/skep/v1/tasks/t/events"})
	if err != nil {
		t.Fatal(err)
	}
	r.Body = http.NoBody
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable || dials == 0 {
		t.Errorf("status %d after %d dials", w.Code, dials)
	}
}

package gateway_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/gateway"
)

// TestPollPace: a partner that has no answer yet, or fails, is asked at its Location more and more seldom,
// and not before the time that it wants. One that holds the request is asked again at once.
func TestPollPace(t *testing.T) {
	t.Parallel()
	status := func(code int, retryAfter string) error {
		w := httptest.NewRecorder()
		w.Header().Set("Retry-After", retryAfter)
		w.WriteHeader(code)
		return gateway.StatusOf(w.Result())
	}
	for name, c := range map[string]struct {
		look gateway.Look
		hold time.Duration
		err  error
		want int // looks in ten minutes
	}{
		"nothing yet":       {want: 63},
		"wants a minute":    {look: gateway.Look{Wait: time.Minute}, want: 10},
		"fails":             {err: status(http.StatusInternalServerError, ""), want: 63},
		"fails and waits":   {err: status(http.StatusBadGateway, "120"), want: 5},
		"too many requests": {err: status(http.StatusTooManyRequests, "300"), want: 2},
		"is unreachable":    {err: errors.New("no route"), want: 63},
		"holds it":          {hold: 20 * time.Second, want: 30},
		"has more each":     {look: gateway.Look{News: true}, want: 600},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Minute, errors.New("over"))
				defer cancel()
				looks := 0
				trouble, err := gateway.Poll(ctx, gateway.Look{Location: "http://lab.example/at/1"}, func(*http.Request) (gateway.Look, error) {
					looks++
					_ = gateway.Pause(ctx, c.hold)
					return c.look, c.err
				})
				if looks < c.want || looks > c.want+1 || err == nil || err.Error() != "over" {
					t.Errorf("%d looks, want %d: %v", looks, c.want, err)
				}
				if (trouble != nil) != (c.err != nil) || c.err != nil && (!errors.Is(trouble, c.err) || !strings.Contains(trouble.Error(), "http://lab.example/at/1")) {
					t.Errorf("%v", trouble)
				}
			})
		})
	}
}

// TestPollEnds: a look at each Location that is told ends with the answer, or with what the partner refuses
// for good, whose reason has the place.
func TestPollEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		_, err := gateway.Poll(t.Context(), gateway.Look{Location: "http://lab.example/1"}, func(r *http.Request) (gateway.Look, error) {
			asked = append(asked, r.URL.Path)
			return map[string]gateway.Look{"/1": {Location: "http://lab.example/2"}, "/2": {Done: len(asked) == 3}}[r.URL.Path], nil
		})
		if err != nil || strings.Join(asked, " ") != "/1 /2 /2" {
			t.Errorf("%q, %v", asked, err)
		}
		for _, code := range []int{http.StatusNotFound, http.StatusGone} {
			looks := 0
			_, err = gateway.Poll(t.Context(), gateway.Look{Location: "http://lab.example/1"}, func(*http.Request) (gateway.Look, error) {
				looks++
				return gateway.Look{}, &gateway.StatusError{Code: code}
			})
			if looks != 1 || !errors.As(err, new(*gateway.Refusal)) || !strings.Contains(err.Error(), "http://lab.example/1") || !strings.Contains(err.Error(), http.StatusText(code)) {
				t.Errorf("%d: %d looks, %v", code, looks, err)
			}
		}
	})
}

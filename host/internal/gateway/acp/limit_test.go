package acp_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp"
	"skep/host/internal/gateway/acp/acptest"
)

// TestLimits: a message above a limit is refused with the limit, and with the line
// to change where it can be changed.
func TestLimits(t *testing.T) {
	t.Parallel()
	large := acptest.New("REQUEST", "agentA", "calc", strings.Repeat("x", acp.MaxMessage)).Text()
	deep := strings.Replace(acptest.New("REQUEST", "agentA", "calc", "7").Text(), `{"header":{`, `{"header":{"x_deep":`+strings.Repeat("[", 64)+strings.Repeat("]", 64)+`,`, 1)
	for name, c := range map[string]struct {
		change       func(*acp.Options)
		text, reason string
		status       int
	}{
		"bytes":      {func(o *acp.Options) { o.MaxBody = 1000 }, large, "larger than 1000 bytes; raise max_body of [gateways.acp]", http.StatusRequestEntityTooLarge},
		"most bytes": {nil, large, "larger than 1048576 bytes; max_body of [gateways.acp] cannot be more", http.StatusRequestEntityTooLarge},
		"depth":      {func(o *acp.Options) { o.MaxDepth = 8 }, deep, "deeper than 8; raise max_depth of [gateways.acp]", http.StatusBadRequest},
		"most depth": {nil, deep, "deeper than 64; max_depth of [gateways.acp] cannot be more", http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, c.change)
			if r := s.sendText(t, c.text); r.Status != c.status || !strings.Contains(r.Text, c.reason) {
				t.Errorf("got %d %s", r.Status, r.Text)
			}
		})
	}
}

// TestRetryAfter: over HTTP a message that may be taken later is told when: after the time that
// rate_limit gives, or else 10 seconds.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for _, c := range []struct {
		err    error
		status int
		want   string
	}{
		{&gateway.RateError{Wait: 1100 * time.Millisecond}, http.StatusTooManyRequests, "2"},
		{fmt.Errorf("a limit: %w", &gateway.RateError{Wait: time.Minute}), http.StatusTooManyRequests, "60"},
		{gateway.ErrBusy, http.StatusTooManyRequests, "10"},
		{gateway.ErrDraining, http.StatusServiceUnavailable, "10"},
		{gateway.ErrElsewhere, http.StatusServiceUnavailable, "10"},
	} {
		s.rt.FailNext("Ask", c.err)
		if r := s.send(t, acptest.New("REQUEST", "agentA", "calc", "7")); r.Status != c.status || r.Header.Get("Retry-After") != c.want {
			t.Errorf("%v: %d, Retry-After %q, want %s", c.err, r.Status, r.Header.Get("Retry-After"), c.want)
		}
	}
}

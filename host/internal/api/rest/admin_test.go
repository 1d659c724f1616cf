package rest_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"skep/host/internal/api/rest"
	"skep/host/internal/telemetry"
)

func TestAdmin(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	h.postAndWait(obj{"body": "b"})
	h.do(request{path: "/whoami", token: "nobody"})
	h.do(request{path: "/nowhere"})
	var notReady error
	registry := prometheus.NewRegistry()
	if err := h.handler.RegisterMetrics(registry); err != nil {
		t.Fatal(err)
	}
	admin := rest.NewAdmin(h.handler, rest.AdminOptions{Loopback: true, Ready: func(context.Context) error { return notReady },
		Metrics: telemetry.Handler(registry, slog.New(slog.DiscardHandler))})
	for path, want := range map[string]string{
		"/livez": "ok\n", "/readyz": "ready\n", "/version": `{"version":"0.0.0-test","protocol_version":"1.3","abi":1}`,
	} {
		if a := serve(t, admin, request{path: path, token: "-"}); a.status != http.StatusOK || a.body != want {
			t.Errorf("%s: %d %q", path, a.status, a.body)
		}
	}
	a := serve(t, admin, request{path: "/metrics", token: "-"})
	for _, line := range []string{
		`skep_http_requests_total{code="200",method="POST",route="/message"} 1`,
		`skep_http_requests_total{code="401",method="GET",route="/whoami"} 1`,
		`skep_http_request_duration_seconds_count{method="POST",route="/message"} 1`,
		`skep_http_requests_total{code="404",method="none",route="none"} 1`,
		"skep_auth_failures_total 1", "skep_http_streams 0", `skep_build_info{go="go`,
		"# TYPE skep_http_requests_total counter", "# TYPE skep_http_request_duration_seconds histogram",
	} {
		if !strings.Contains(a.body, "\n"+line) && !strings.HasPrefix(a.body, line) {
			t.Errorf("the metrics lack %s:\n%s", line, a.body)
		}
	}
	notReady = errors.New("draining\nnow")
	if a := serve(t, admin, request{path: "/readyz", token: "-"}); a.status != http.StatusServiceUnavailable || a.body != "not ready: draining; now\n" {
		t.Errorf("%d %q", a.status, a.body)
	}
	for _, c := range []struct {
		q      request
		status int
	}{
		{request{path: "/livez", host: "evil.example"}, http.StatusMisdirectedRequest},
		{request{method: "POST", path: "/livez"}, http.StatusMethodNotAllowed},
		{request{method: "HEAD", path: "/livez"}, http.StatusOK},
		{request{path: "/message"}, http.StatusNotFound},
		{request{path: "/livez/"}, http.StatusNotFound},
	} {
		if a := serve(t, admin, c.q); a.status != c.status {
			t.Errorf("%s %s: %d %s, want %d", c.q.method, c.q.path, a.status, a.body, c.status)
		}
	}
}

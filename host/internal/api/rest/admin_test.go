package rest_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/api/rest"
	"skep/host/internal/swarm/metrics"
)

func TestAdmin(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	h.postAndWait(obj{"body": "b"})
	h.do(request{path: "/whoami", token: "nobody"})
	var notReady error
	meters := metrics.New(metrics.Limits{Agent: 2, Tenant: 9})
	var batch metrics.Batch
	for _, r := range []metrics.Report{
		{Name: "load", Gauge: true, Value: -0.5},
		{Name: "load", Value: 1e21, Labels: []metrics.Label{{Name: "item", Value: "te\\a \"ü\""}}},
		{Name: "one_more", Value: 1},
	} {
		batch.Put(r)
	}
	meters.Add(metrics.Owner{Tenant: "acme", Swarm: "hive", Agent: "boss"}, &batch)
	admin := rest.NewAdmin(h.handler, rest.AdminOptions{Loopback: true, AgentMetrics: meters, Ready: func(context.Context) error { return notReady },
		Counters: func() []rest.Counter { return []rest.Counter{{Name: "skep_more_total", Help: "More.", Value: 3}} },
		Gauges: func() []rest.Gauge {
			return []rest.Gauge{{Name: "skep_few", Value: -3}, {Name: "skep_none", Peers: []rest.PeerValue{}}, {Name: "skep_by_peer", Peers: []rest.PeerValue{{Peer: "a\"\\b", Value: 0.25}, {Peer: "é", Value: 1}}}}
		}})
	for path, want := range map[string]string{
		"/livez": "ok\n", "/readyz": "ready\n", "/version": `{"version":"0.0.0-test","protocol_version":"1.3","abi":1}`,
	} {
		if a := serve(t, admin, request{path: path, token: "-"}); a.status != http.StatusOK || a.body != want {
			t.Errorf("%s: %d %q", path, a.status, a.body)
		}
	}
	a := serve(t, admin, request{path: "/metrics", token: "-"})
	for _, line := range []string{
		`skep_http_requests_total{method="POST",route="/message",code="200"} 1`,
		`skep_http_requests_total{method="GET",route="/whoami",code="401"} 1`,
		"skep_auth_failures_total 1", "skep_http_streams 0", `skep_build_info{version="0.0.0-test",go="go`,
		"# TYPE skep_http_requests_total counter", "# HELP skep_more_total More.", "skep_more_total 3",
		"skep_few -3", "# TYPE skep_none gauge", `skep_by_peer{peer="a\"\\b"} 0.25`, `skep_by_peer{peer="é"} 1`,
		"# TYPE skep_agent_load gauge\n" + `skep_agent_load{tenant="acme",swarm="hive",agent="boss"} -0.5`,
		"# TYPE skep_agent_load_total counter\n" + `skep_agent_load_total{tenant="acme",swarm="hive",agent="boss",item="te\\a \"ü\""} 1e+21`,
		"skep_reports_refused_total 1",
	} {
		if !strings.Contains(a.body, "\n"+line) && !strings.HasPrefix(a.body, line) {
			t.Errorf("the metrics lack %s:\n%s", line, a.body)
		}
	}
	if strings.Contains(a.body, "one_more") {
		t.Error("a series that has no room is shown")
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

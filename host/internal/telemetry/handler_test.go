package telemetry_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"skep/host/internal/swarm/metrics"
	"skep/host/internal/telemetry"
)

// read returns the metrics of collectors in the text format, and what was logged.
func read(t *testing.T, collectors ...prometheus.Collector) (text, logged string) {
	t.Helper()
	registry := prometheus.NewRegistry()
	for _, c := range collectors {
		if err := registry.Register(c); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	w := httptest.NewRecorder()
	telemetry.Handler(registry, slog.New(slog.NewTextHandler(&log, nil))).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String(), log.String()
}

func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+text, "\n"+line) {
			t.Errorf("the metrics lack %s:\n%s", line, text)
		}
	}
}

func TestFamilies(t *testing.T) {
	t.Parallel()
	text, logged := read(t, telemetry.Collector(func() []telemetry.Family {
		return []telemetry.Family{
			telemetry.Counter("skep_more_total", "More.", 3), telemetry.Gauge("skep_few", "Few.", -3),
			{Name: "skep_by_peer", Kind: prometheus.GaugeValue, Labels: []string{"peer"},
				Samples: []telemetry.Sample{{Labels: []string{"a\"\\b"}, Value: 0.25}, {Labels: []string{"é"}, Value: 1}}},
			{Name: "skep_none", Labels: []string{"peer"}},
		}
	}))
	wantLines(t, text, "# HELP skep_more_total More.", "# TYPE skep_more_total counter", "skep_more_total 3",
		"# TYPE skep_few gauge", "skep_few -3", `skep_by_peer{peer="a\"\\b"} 0.25`, `skep_by_peer{peer="é"} 1`)
	if logged != "" {
		t.Error(logged)
	}
}

// A family that cannot be shown is logged, and hides no other.
func TestWrongFamily(t *testing.T) {
	t.Parallel()
	text, logged := read(t, telemetry.Collector(func() []telemetry.Family {
		return []telemetry.Family{
			telemetry.Counter("skep_more_total", "More.", 3),
			{Name: "skep_wrong", Kind: prometheus.GaugeValue, Labels: []string{"peer"}, Samples: []telemetry.Sample{{Value: 1}}},
		}
	}))
	wantLines(t, text, "skep_more_total 3")
	if !strings.Contains(logged, "skep_wrong") {
		t.Errorf("the log: %q", logged)
	}
}

func TestAgentMetrics(t *testing.T) {
	t.Parallel()
	reports := metrics.New(metrics.Limits{Agent: 3, Tenant: 9})
	var batch metrics.Batch
	for _, r := range []metrics.Report{
		{Name: "load", Gauge: true, Value: -0.5},
		{Name: "load", Value: 1e21, Labels: []metrics.Label{{Name: "item", Value: "te\\a \"ü\""}}},
		{Name: "load", Value: 2, Labels: []metrics.Label{{Name: "size", Value: "x"}}},
		{Name: "one_more", Value: 1},
	} {
		batch.Put(r)
	}
	reports.Add(metrics.Owner{Tenant: "acme", Swarm: "hive", Agent: "boss"}, &batch)
	text, logged := read(t, telemetry.Collector(func() []telemetry.Family { return telemetry.AgentMetrics(reports, nil) }))
	wantLines(t, text,
		"# TYPE skep_agent_load gauge\n"+`skep_agent_load{agent="boss",swarm="hive"} -0.5`,
		"# TYPE skep_agent_load_total counter\n"+`skep_agent_load_total{agent="boss",item="te\\a \"ü\"",swarm="hive"} 1e+21`,
		`skep_agent_load_total{agent="boss",size="x",swarm="hive"} 2`,
		"skep_reports_refused_total 1")
	if strings.Contains(text, "one_more") || logged != "" {
		t.Errorf("%s\n%s", logged, text)
	}
}

// Without tenants as labels, what their agents report is added up.
func TestAgentMetricsOfTenants(t *testing.T) {
	t.Parallel()
	reports := metrics.New(metrics.Limits{Agent: 3, Tenant: 9})
	for _, tenant := range []string{"acme", "beta"} {
		var batch metrics.Batch
		batch.Put(metrics.Report{Name: "load", Value: 2})
		reports.Add(metrics.Owner{Tenant: tenant, Swarm: "hive", Agent: "boss"}, &batch)
	}
	one := telemetry.NewWork(slog.New(slog.DiscardHandler), false).Tenants()
	text, logged := read(t, telemetry.Collector(func() []telemetry.Family { return telemetry.AgentMetrics(reports, one) }))
	wantLines(t, text, `skep_agent_load_total{agent="boss",swarm="hive"} 4`)
	each := telemetry.NewWork(slog.New(slog.DiscardHandler), true).Tenants()
	apart, also := read(t, telemetry.Collector(func() []telemetry.Family { return telemetry.AgentMetrics(reports, each) }))
	wantLines(t, apart, `skep_agent_load_total{agent="boss",swarm="hive",tenant="beta"} 2`)
	if logged != "" || also != "" {
		t.Error(logged, also)
	}
}

package swarm

import (
	"maps"
	"slices"
	"strings"

	"skep/abi"
	"skep/host/internal/swarm/metrics"
)

// Bounds of the series of one agent and of one tenant.
const (
	maxAgentSeries  = 100
	maxTenantSeries = 1000
)

// labelAction is the label with the action whose code has reported a number.
const labelAction = "action"

// Metrics are the numbers that agents have reported.
func (r *Runtime) Metrics() *metrics.Registry { return r.metrics }

// metricReports are the reports of a turn that is not committed.
type metricReports struct {
	calls int
	batch metrics.Batch
}

// ReportMetric reports a number, which counts when the turn is committed. The request's
// names and sizes must be valid. A refusal is LIMIT.
func (t *Turn) ReportMetric(req abi.MetricRequest) *abi.Error {
	if t.metricReports.calls >= abi.MaxMetrics {
		return abi.Errorf(abi.CodeLimit, abi.OpMetric, "calls", "a turn may report %d numbers", abi.MaxMetrics)
	}
	t.metricReports.calls++
	r := metrics.Report{Name: req.Name, Gauge: req.Kind == abi.MetricGauge, Value: *req.Value}
	if !r.Gauge {
		r.Name = strings.TrimSuffix(r.Name, "_total") // the exposition adds the suffix
	}
	for _, name := range slices.Sorted(maps.Keys(req.Labels)) {
		r.Labels = append(r.Labels, metrics.Label{Name: name, Value: req.Labels[name]})
	}
	if t.acting != "" {
		r.Labels = append(r.Labels, metrics.Label{Name: labelAction, Value: t.acting})
	}
	undo := t.metricReports.batch.Put(r)
	if t.replay != nil {
		return nil // the earlier attempt was not refused
	}
	var fault *abi.Error
	switch t.rt.metrics.Check(t.owner(), &t.metricReports.batch) {
	case metrics.AgentFull:
		fault = abi.Errorf(abi.CodeLimit, abi.OpMetric, "series", "agent %q has %d series, at most %d: use fewer values of labels",
			t.agent.Name, maxAgentSeries, maxAgentSeries)
	case metrics.TenantFull:
		fault = abi.Errorf(abi.CodeLimit, abi.OpMetric, "tenant_series", "the agents of tenant %q have %d series, at most %d: use fewer values of labels",
			t.task.key.Tenant, maxTenantSeries, maxTenantSeries)
	}
	if fault != nil {
		undo()
	}
	return fault
}

func (t *Turn) owner() metrics.Owner {
	return metrics.Owner{Tenant: t.task.key.Tenant, Swarm: t.task.key.Swarm, Agent: t.agent.Name}
}

// flushMetrics counts the turn's reports, after the commit that ends it.
func (t *Turn) flushMetrics() {
	t.rt.metrics.Add(t.owner(), &t.metricReports.batch)
	t.metricReports.batch = metrics.Batch{}
}

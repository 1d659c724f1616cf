package swarm

import (
	"maps"
	"slices"
	"strings"

	"skep/abi"
	"skep/host/internal/meter"
)

// Series of one agent and of one tenant.
const (
	maxAgentSeries  = 100
	maxTenantSeries = 1000
)

// labelAction names the action whose code has reported a number.
const labelAction = "action"

// Meters are the numbers that agents have reported.
func (r *Runtime) Meters() *meter.Board { return r.meters }

// measured are the numbers that a turn has reported and that do not count yet.
type measured struct {
	calls int
	batch meter.Batch
}

// Measure reports a number, which counts when the turn ends. The request's names
// and sizes must be good. A refusal is LIMIT.
func (t *Turn) Measure(req abi.MetricRequest) *abi.Error {
	if t.measured.calls >= abi.MaxMetrics {
		return abi.Errorf(abi.CodeLimit, abi.OpMetric, "calls", "a turn may report %d numbers", abi.MaxMetrics)
	}
	t.measured.calls++
	r := meter.Report{Name: req.Name, Gauge: req.Kind == abi.MetricGauge, Value: *req.Value}
	if !r.Gauge {
		r.Name = strings.TrimSuffix(r.Name, "_total") // it is shown with it
	}
	for _, name := range slices.Sorted(maps.Keys(req.Labels)) {
		r.Labels = append(r.Labels, meter.Label{Name: name, Value: req.Labels[name]})
	}
	if t.acting != "" {
		r.Labels = append(r.Labels, meter.Label{Name: labelAction, Value: t.acting})
	}
	undo := t.measured.batch.Put(r)
	if t.again != nil {
		return nil // it had room then
	}
	var fault *abi.Error
	switch t.rt.meters.Room(t.owner(), &t.measured.batch) {
	case meter.AgentFull:
		fault = abi.Errorf(abi.CodeLimit, abi.OpMetric, "series", "agent %q has %d series, at most %d: use fewer values of labels",
			t.agent.Name, maxAgentSeries, maxAgentSeries)
	case meter.TenantFull:
		fault = abi.Errorf(abi.CodeLimit, abi.OpMetric, "tenant_series", "the agents of tenant %q have %d series, at most %d: use fewer values of labels",
			t.task.key.Tenant, maxTenantSeries, maxTenantSeries)
	}
	if fault != nil {
		undo()
	}
	return fault
}

func (t *Turn) owner() meter.Owner {
	return meter.Owner{Tenant: t.task.key.Tenant, Swarm: t.task.key.Swarm, Agent: t.agent.Name}
}

// flushMetrics counts what the turn has reported, after the commit that ends it.
func (t *Turn) flushMetrics() {
	t.rt.meters.Add(t.owner(), &t.measured.batch)
	t.measured.batch = meter.Batch{}
}

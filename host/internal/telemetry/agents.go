package telemetry

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"skep/host/internal/swarm/metrics"
)

// agentPrefix begins the names of metrics that agents report. No metric of the
// host begins with it.
const agentPrefix = "skep_agent_"

// AgentMetrics are the families that agents report. A counter's name ends in _total, so a
// gauge of the same name does not collide.
func AgentMetrics(reports *metrics.Registry) []Family {
	all := []Family{Counter("skep_reports_refused_total", "Numbers of agents that were one series too many.", reports.Refused())}
	for _, s := range reports.Series() {
		f := Family{Name: agentPrefix + s.Name, Help: "Reported by agents.", Kind: prometheus.GaugeValue, Labels: []string{"tenant", "swarm", "agent"}}
		if !s.Gauge {
			f.Name, f.Kind = f.Name+"_total", prometheus.CounterValue
		}
		values := []string{s.Tenant, s.Swarm, s.Agent}
		for _, l := range s.Labels {
			f.Labels, values = append(f.Labels, l.Name), append(values, strings.ToValidUTF8(l.Value, "\uFFFD"))
		}
		f.Samples = []Sample{{Labels: values, Value: s.Value}}
		all = append(all, f)
	}
	return all
}

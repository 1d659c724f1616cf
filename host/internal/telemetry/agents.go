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
// gauge of the same name does not collide. Numbers of tenants that share a label, or have
// none, are added up; tenants is nil where they have none.
func AgentMetrics(reports *metrics.Registry, tenants *NameLimiter) []Family {
	all := []Family{Counter("skep_reports_refused_total", "Numbers of agents that were one series too many.", reports.Refused())}
	places := map[string]int{}
	for _, s := range reports.Series() {
		if tenants == nil {
			s.Value += s.Erased
		}
		f := agentFamily(s, tenants)
		id := f.Name + "\x00" + strings.Join(f.Labels, "\x00") + "\x00" + strings.Join(f.Samples[0].Labels, "\x00")
		if i, has := places[id]; has {
			all[i].Samples[0].Value += s.Value
			continue
		}
		places[id] = len(all)
		all = append(all, f)
	}
	return all
}

func agentFamily(s metrics.Series, tenants *NameLimiter) Family {
	f := Family{Name: agentPrefix + s.Name, Help: "Reported by agents.", Kind: prometheus.GaugeValue, Labels: []string{"swarm", "agent"}}
	if !s.Gauge {
		f.Name, f.Kind = f.Name+"_total", prometheus.CounterValue
	}
	values := []string{s.Swarm, s.Agent}
	if tenants != nil {
		f.Labels, values = append(f.Labels, "tenant"), append(values, tenants.Label(s.Tenant))
	}
	for _, l := range s.Labels {
		f.Labels, values = append(f.Labels, l.Name), append(values, strings.ToValidUTF8(l.Value, "\uFFFD"))
	}
	f.Samples = []Sample{{Labels: values, Value: s.Value}}
	return f
}

package rest

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"skep/host/internal/swarm/metrics"
)

// agentPrefix begins the names of metrics that agents report. No metric of the
// host begins with it.
const agentPrefix = "skep_agent_"

// writeAgentMetrics renders the metrics that agents report. A counter's name ends
// in _total, so a gauge of the same name does not collide.
func writeAgentMetrics(w io.Writer, b *metrics.Registry) {
	families := map[string][]metrics.Series{}
	for _, s := range b.Series() {
		name := agentPrefix + s.Name
		if !s.Gauge {
			name += "_total"
		}
		families[name] = append(families[name], s)
	}
	for _, name := range slices.Sorted(maps.Keys(families)) {
		kind, lines := "counter", []string{}
		for _, s := range families[name] {
			if s.Gauge {
				kind = "gauge"
			}
			lines = append(lines, fmt.Sprintf("%s{%s} %s\n", name, seriesLabels(s), strconv.FormatFloat(s.Value, 'g', -1, 64)))
		}
		writeFamily(w, name, kind, "Reported by agents.", lines...)
	}
	writeFamily(w, "skep_reports_refused_total", "counter", "Numbers of agents that were one series too many.",
		sample("skep_reports_refused_total", b.Refused()))
}

func seriesLabels(s metrics.Series) string {
	all := append([]metrics.Label{{Name: "tenant", Value: s.Tenant}, {Name: "swarm", Value: s.Swarm}, {Name: "agent", Value: s.Agent}}, s.Labels...)
	var parts []string
	for _, l := range all {
		parts = append(parts, l.Name+`="`+labelEscaper.Replace(l.Value)+`"`)
	}
	return strings.Join(parts, ",")
}

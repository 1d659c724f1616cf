package rest

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"skep/host/internal/meter"
)

// agentPrefix begins the names of the metrics that agents report, and of no
// others.
const agentPrefix = "skep_agent_"

// reported renders what agents have reported. Counters and gauges of one name
// differ by their ends.
func reported(w io.Writer, b *meter.Board) {
	families := map[string][]meter.Series{}
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
			lines = append(lines, fmt.Sprintf("%s{%s} %s\n", name, labels(s), strconv.FormatFloat(s.Value, 'g', -1, 64)))
		}
		family(w, name, kind, "Reported by agents.", lines...)
	}
	family(w, "skep_reports_refused_total", "counter", "Numbers of agents that were one series too many.",
		sample("skep_reports_refused_total", b.Refused()))
}

func labels(s meter.Series) string {
	all := append([]meter.Label{{Name: "tenant", Value: s.Tenant}, {Name: "swarm", Value: s.Swarm}, {Name: "agent", Value: s.Agent}}, s.Labels...)
	var parts []string
	for _, l := range all {
		parts = append(parts, l.Name+`="`+inLabel.Replace(l.Value)+`"`)
	}
	return strings.Join(parts, ",")
}

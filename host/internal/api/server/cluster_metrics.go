package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"skep/host/internal/swarm/slot"
	"skep/host/internal/telemetry"
)

// clusterMetrics are numbers of the hosts that share the store, as this one sees them; none where it is
// alone.
func (s *Server) clusterMetrics() []telemetry.Family {
	if s.opt.Cluster == nil {
		return nil
	}
	hosts, level := s.opt.Cluster.Hosts()
	var here, elsewhere float64
	for _, h := range hosts {
		if h.Self {
			here = float64(h.Slots)
		} else {
			elsewhere += float64(h.Slots)
		}
	}
	slots := telemetry.Family{
		Name: "skep_cluster_slots", Help: "Slots of tasks, by where they are worked on.", Kind: prometheus.GaugeValue, Labels: []string{"state"},
		Samples: []telemetry.Sample{
			{Labels: []string{"here"}, Value: here}, {Labels: []string{"elsewhere"}, Value: elsewhere},
			{Labels: []string{"nowhere"}, Value: float64(slot.Tasks) - here - elsewhere},
		},
	}
	n := s.opt.Cluster.Counts()
	return []telemetry.Family{
		slots,
		telemetry.Gauge("skep_cluster_hosts", "Hosts that are alive, this one included.", float64(len(hosts))),
		telemetry.Gauge("skep_cluster_feature_level", "The feature level of what hosts write.", float64(level)),
		telemetry.Counter("skep_cluster_fences_total", "Hosts that were silent and that this one has fenced.", n.Fenced),
		telemetry.Counter("skep_cluster_slots_taken_total", "Slots that this host has taken, free ones and those of hosts that were lost.", n.Taken),
		telemetry.Counter("skep_cluster_slots_given_total", "Slots that this host has given away.", n.Given),
		telemetry.Counter("skep_cluster_beats_late_total", "Signs of life of this host that came two beats or more after the one before.", n.LateBeats),
	}
}

package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"skep/host/internal/telemetry"
)

// peerMetrics has a series for each swarm that the operator or an admin has named.
// It only counts discovered swarms, whose number others decide.
func (s *Server) peerMetrics() []telemetry.Family {
	asked, failed := s.opt.Peers.Registry().Counts()
	up := peerFamily("skep_peer_up", "Whether a swarm answered when it was last asked.", prometheus.GaugeValue)
	latency := peerFamily("skep_peer_latency_seconds", "How long a swarm last took to answer.", prometheus.GaugeValue)
	var active, discovered float64
	for _, e := range s.opt.Peers.Registry().Entries() {
		if e.Discovered {
			discovered++
			continue
		}
		value := 0.0
		if e.Active {
			active++
			value = 1
		}
		up.Samples = append(up.Samples, peerSample(e.Name, value))
		if e.Latency != nil {
			latency.Samples = append(latency.Samples, peerSample(e.Name, *e.Latency))
		}
	}
	return []telemetry.Family{
		telemetry.Counter("skep_peer_checks_total", "How often swarms were asked whether they are well.", asked),
		telemetry.Counter("skep_peer_checks_failed_total", "How often one did not answer, or was not well.", failed),
		telemetry.Gauge("skep_peers", "Swarms that are known by the file or by registration.", float64(len(up.Samples))),
		telemetry.Gauge("skep_peers_active", "Those of them that answered when they were last asked.", active),
		telemetry.Gauge("skep_peers_discovered", "Swarms that other swarms have listed.", discovered),
		up, latency,
	}
}

// peerFamily is a family with one sample for each peer. Each name makes a time series, so
// names come from the operator or from admins only.
func peerFamily(name, help string, kind prometheus.ValueType) telemetry.Family {
	return telemetry.Family{Name: name, Help: help, Kind: kind, Labels: []string{"peer"}}
}

func peerSample(peer string, value float64) telemetry.Sample {
	return telemetry.Sample{Labels: []string{peer}, Value: value}
}

package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"skep/host/internal/telemetry"
)

// deliveryMetrics counts the deliveries to each peer, and how they ended.
func (s *Server) deliveryMetrics() []telemetry.Family {
	attempts := peerFamily("skep_letter_attempts_total", "How often letters were sent, by the swarm they are for.", prometheus.CounterValue)
	delivered := peerFamily("skep_letters_delivered_total", "Letters that a swarm has taken.", prometheus.CounterValue)
	dead := peerFamily("skep_letters_dead_total", "Letters that a swarm has refused, or that were given up.", prometheus.CounterValue)
	outboxes := peerFamily("skep_letter_outboxes", "Tasks with letters that wait or are under way, by the swarm they are for.", prometheus.GaugeValue)
	breaker := peerFamily("skep_peer_breaker", "Whether letters go to a swarm: 0 as they come, 1 one to see whether it answers again, 2 none for a while.", prometheus.GaugeValue)
	for _, n := range s.opt.Router.Stats() {
		attempts.Samples = append(attempts.Samples, peerSample(n.Peer, float64(n.Attempts)))
		delivered.Samples = append(delivered.Samples, peerSample(n.Peer, float64(n.Delivered)))
		dead.Samples = append(dead.Samples, peerSample(n.Peer, float64(n.Dead)))
		outboxes.Samples = append(outboxes.Samples, peerSample(n.Peer, float64(n.Outboxes)))
		breaker.Samples = append(breaker.Samples, peerSample(n.Peer, float64(n.Breaker)))
	}
	return []telemetry.Family{attempts, delivered, dead, outboxes, breaker}
}

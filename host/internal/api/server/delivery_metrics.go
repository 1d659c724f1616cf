package server

import (
	"skep/host/internal/api/rest"
	"skep/host/internal/peer/router"
)

// deliveryCounters counts the deliveries to each peer, and how they ended.
func (s *Server) deliveryCounters() []rest.Counter {
	stats := s.opt.Router.Stats()
	return []rest.Counter{
		{Name: "skep_letter_attempts_total", Help: "How often letters were sent, by the swarm they are for.",
			Peers: byPeer(stats, func(s router.Stats) int64 { return s.Attempts })},
		{Name: "skep_letters_delivered_total", Help: "Letters that a swarm has taken.",
			Peers: byPeer(stats, func(s router.Stats) int64 { return s.Delivered })},
		{Name: "skep_letters_dead_total", Help: "Letters that a swarm has refused, or that were given up.",
			Peers: byPeer(stats, func(s router.Stats) int64 { return s.Dead })},
	}
}

func (s *Server) deliveryGauges() []rest.Gauge {
	stats := s.opt.Router.Stats()
	return []rest.Gauge{
		{Name: "skep_letter_outboxes", Help: "Tasks with letters that wait or are under way, by the swarm they are for.",
			Peers: byPeer(stats, func(s router.Stats) int64 { return int64(s.Outboxes) })},
		{Name: "skep_peer_breaker", Help: "Whether letters go to a swarm: 0 as they come, 1 one to see whether it answers again, 2 none for a while.",
			Peers: byPeer(stats, func(s router.Stats) int64 { return int64(s.Breaker) })},
	}
}

// byPeer returns one value per peer.
func byPeer(stats []router.Stats, value func(router.Stats) int64) []rest.PeerValue {
	out := []rest.PeerValue{}
	for _, s := range stats {
		out = append(out, rest.PeerValue{Peer: s.Peer, Value: float64(value(s))})
	}
	return out
}

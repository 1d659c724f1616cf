package server

import "skep/host/internal/api/rest"

func (s *Server) peerCounters() []rest.Counter {
	asked, failed := s.opt.Peers.Registry().Counts()
	return []rest.Counter{
		{Name: "skep_peer_checks_total", Help: "How often swarms were asked whether they are well.", Value: asked},
		{Name: "skep_peer_checks_failed_total", Help: "How often one did not answer, or was not well.", Value: failed},
	}
}

// peerGauges has a series for each swarm that the operator or an admin has named.
// It only counts discovered swarms, whose number others decide.
func (s *Server) peerGauges() []rest.Gauge {
	up, latency := []rest.PeerValue{}, []rest.PeerValue{}
	var active, discovered int64
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
		up = append(up, rest.PeerValue{Peer: e.Name, Value: value})
		if e.Latency != nil {
			latency = append(latency, rest.PeerValue{Peer: e.Name, Value: *e.Latency})
		}
	}
	return []rest.Gauge{
		{Name: "skep_peers", Help: "Swarms that are known by the file or by registration.", Value: int64(len(up))},
		{Name: "skep_peers_active", Help: "Those of them that answered when they were last asked.", Value: active},
		{Name: "skep_peers_discovered", Help: "Swarms that other swarms have listed.", Value: discovered},
		{Name: "skep_peer_up", Help: "Whether a swarm answered when it was last asked.", Peers: up},
		{Name: "skep_peer_latency_seconds", Help: "How long a swarm last took to answer.", Peers: latency},
	}
}

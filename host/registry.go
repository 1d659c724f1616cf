package host

import (
	"path/filepath"

	"skep/host/internal/config"
	"skep/host/internal/listen"
	"skep/host/internal/registry"
	"skep/host/internal/rest"
)

// registryName is the name of the file of the registered swarms in a data
// directory.
const registryName = "registry.json"

// openRegistry reads which other swarms are known. Only a host that serves its
// own machine alone asks swarms at private addresses what they are; one that has
// a proxy in front serves others.
func (h *Host) openRegistry() (known *registry.Registry, private bool, err error) {
	cfg := h.opt.Config
	opt := registry.Options{
		Path: filepath.Join(h.opt.DataDir, registryName), Local: cfg.Swarm.Name,
		Private: listen.Loopback(h.publicAddr.Addr()) && cfg.Server.PublicURL == "" && len(cfg.Server.TrustedProxies) == 0,
		Static:  static(cfg.Peers), Health: cfg.Server.PeerHealth, Logger: h.log,
	}
	known, err = registry.Open(opt)
	return known, opt.Private, err
}

// warnOfPeers logs to which swarms no letter can leave, as the token of one that was
// registered is kept in memory only.
func (h *Host) warnOfPeers() {
	for _, e := range h.peers.known.Entries() {
		if err := h.peers.trouble(e.Name); err != nil && !e.Found {
			h.log.Warn("letters for a swarm cannot leave", "peer", e.Name, "err", err)
		}
	}
}

func static(peers []config.Peer) (all []registry.Static) {
	for _, p := range peers {
		all = append(all, registry.Static{
			Name: p.Name, BaseURL: p.BaseURL, Public: p.Public, AllowPrivate: p.AllowPrivate, Metadata: p.Metadata,
		})
	}
	return all
}

func (h *Host) peerCounters() []rest.Counter {
	asked, failed := h.peers.known.Counts()
	return []rest.Counter{
		{Name: "skep_peer_checks_total", Help: "How often swarms were asked whether they are well.", Value: asked},
		{Name: "skep_peer_checks_failed_total", Help: "How often one did not answer, or was not well.", Value: failed},
	}
}

// peerGauges are of the swarms that the operator or an admin has named, with a
// series for each, and of the number of those that other swarms have listed.
func (h *Host) peerGauges() []rest.Gauge {
	up, latency := []rest.PeerValue{}, []rest.PeerValue{}
	var active, discovered int64
	for _, e := range h.peers.known.Entries() {
		if e.Found {
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

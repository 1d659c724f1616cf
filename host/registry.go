package host

import (
	"path/filepath"

	"skep/host/internal/listen"
	"skep/host/internal/registry"
)

// openRegistry reads which other swarms are known. Only a host that serves its
// own machine alone asks swarms at private addresses what they are.
func (h *Host) openRegistry() (*registry.Registry, error) {
	cfg := h.opt.Config
	opt := registry.Options{
		Path: filepath.Join(h.opt.DataDir, "registry.json"), Local: cfg.Swarm.Name,
		Private: listen.Loopback(h.publicAddr.Addr()), Logger: h.log,
	}
	for _, p := range cfg.Peers {
		opt.Static = append(opt.Static, registry.Static{Name: p.Name, BaseURL: p.BaseURL, Public: p.Public, Metadata: p.Metadata})
	}
	return registry.Open(opt)
}

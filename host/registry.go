package host

import (
	"path/filepath"

	"skep/host/internal/listen"
	"skep/host/internal/registry"
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
		Logger:  h.log,
	}
	for _, p := range cfg.Peers {
		opt.Static = append(opt.Static, registry.Static{Name: p.Name, BaseURL: p.BaseURL, Public: p.Public, Metadata: p.Metadata})
	}
	known, err = registry.Open(opt)
	return known, opt.Private, err
}

package directory

import (
	"context"

	"skep/host/internal/definition/config"
	"skep/host/internal/peer/registry"
)

// OpenRegistry adds the registered swarms. A host whose listener is on loopback
// and that has no proxy in front serves its own machine alone; only such a host
// may connect to registered swarms at private addresses.
func (d *Directory) OpenRegistry(ctx context.Context, loopback bool) (err error) {
	s := d.opt.Config.Server
	d.allowPrivate = loopback && s.PublicURL == "" && len(s.TrustedProxies) == 0
	d.registry, err = registry.Open(ctx, registry.Options{
		Path: d.opt.RegistryFile, Store: d.opt.RegistryStore, Local: d.opt.Config.Swarm.Name, AllowPrivate: d.allowPrivate,
		Static: static(d.opt.Config.Peers), HealthInterval: s.PeerHealth, Logger: d.opt.Logger,
		OnUp: d.opt.OnUp, OnStart: d.opt.OnStart, IsPartner: d.isPartner,
	})
	if err != nil {
		return err
	}
	d.warnUnreachable()
	return nil
}

// Refresh reads the registered swarms again that hosts share.
func (d *Directory) Refresh(ctx context.Context) error {
	return d.registry.Refresh(ctx)
}

// Registry returns the registry, nil before [Directory.OpenRegistry].
func (d *Directory) Registry() *registry.Registry { return d.registry }

// warnUnreachable logs the swarms that mail cannot reach: the token of a registered
// swarm is kept in memory only, so a restart may lose it.
func (d *Directory) warnUnreachable() {
	for _, e := range d.registry.Entries() {
		if err := d.CheckPeer(e.Name); err != nil && !e.Discovered {
			d.opt.Logger.Warn("letters for a swarm cannot leave", "peer", e.Name, "err", err)
		}
	}
}

func static(peers []config.Peer) (all []registry.Static) {
	for _, p := range peers {
		all = append(all, registry.Static{
			Name: p.Name, BaseURL: p.BaseURL, Public: p.Public, AllowPrivate: p.AllowPrivate, Metadata: p.Metadata, TLS: p.TLS,
		})
	}
	return all
}

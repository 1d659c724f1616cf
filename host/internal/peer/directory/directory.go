package directory

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"skep/host/internal/api/audit"
	"skep/host/internal/definition/config"
	"skep/host/internal/peer/registry"
	"skep/host/internal/peer/router"
	"skep/host/internal/peer/signature"
	"skep/host/internal/turn/egress"
)

// registeredGiveUp is how long the router tries a message for a registered swarm.
const registeredGiveUp = 30 * time.Second

// Options of [New]. Config and Logger are required.
type Options struct {
	Config *config.Config
	// RegistryFile is the path of the file of registered swarms.
	RegistryFile string
	// RegistryStore has the registered swarms where hosts share them, nil for the file.
	RegistryStore registry.Store
	// Partner returns how to reach a swarm that a gateway serves; ok is false for another.
	// It is safe for concurrent use. Nil has none.
	Partner func(name string) (p router.Peer, ok bool)
	// Env looks up the variables with tokens of registered swarms. Nil has none.
	Env func(name string) (string, bool)
	// OnUp and OnStart are the hooks of the registry.
	OnUp    func(name string)
	OnStart func(ctx context.Context, name string, at time.Time) error
	Audit   *audit.Log
	Logger  *slog.Logger
}

// Directory finds peers by name: first in the peers of the configuration, then among the
// partners of gateways, then in the registry. Its methods are safe for concurrent use after
// [Directory.OpenRegistry].
type Directory struct {
	opt Options
	// configured is replaced by a reload, never changed.
	configured atomic.Pointer[[]config.Peer]
	// registry is nil before OpenRegistry.
	registry *registry.Registry
	// allowPrivate allows private addresses for registered swarms.
	allowPrivate bool
}

var _ router.Peers = (*Directory)(nil)

// New returns a directory of the configured peers alone.
func New(opt Options) *Directory {
	d := &Directory{opt: opt}
	d.configured.Store(&opt.Config.Peers)
	return d
}

// Peer implements [router.Peers].
func (d *Directory) Peer(name string) (router.Peer, error) {
	signs := d.opt.Config.Server.SignLetters
	if f, ok := d.configuredPeer(name); ok {
		return checkPeer(name, router.Peer{
			BaseURL: f.BaseURL, Token: f.AuthToken.Reveal(), GiveUp: f.GiveUp, BodyToken: f.LegacyBodyToken,
			AllowPrivate: f.AllowPrivate || d.allowPrivate, AllowPrivateNames: f.AllowPrivate,
			SignRequests: signs || f.VerifyKey != "", TLS: f.TLS,
		})
	}
	if p, ok := d.partner(name); ok {
		return p, nil
	}
	if d.registry == nil {
		return router.Peer{}, unknownPeer(name)
	}
	e, ok := d.registry.Entry(name)
	if !ok || e.Fixed {
		return router.Peer{}, unknownPeer(name)
	}
	token, err := d.registeredToken(name)
	if err != nil {
		return router.Peer{}, err
	}
	return checkPeer(name, router.Peer{BaseURL: e.BaseURL, Token: token, GiveUp: registeredGiveUp, AllowPrivate: d.allowPrivate, SignRequests: signs})
}

func (d *Directory) partner(name string) (router.Peer, bool) {
	if d.opt.Partner == nil {
		return router.Peer{}, false
	}
	return d.opt.Partner(name)
}

func (d *Directory) isPartner(name string) bool {
	_, ok := d.partner(name)
	return ok
}

func (d *Directory) configuredPeer(name string) (config.Peer, bool) {
	peers := *d.configured.Load()
	i := slices.IndexFunc(peers, func(p config.Peer) bool { return p.Name == name })
	if i < 0 {
		return config.Peer{}, false
	}
	return peers[i], true
}

// CheckPeer returns why mail for a swarm cannot be sent, or nil.
func (d *Directory) CheckPeer(name string) error {
	_, err := d.Peer(name)
	return err
}

// Verify implements the SignatureVerifier of the REST interface: it checks the
// signature of a swarm that has a verify_key, and accepts all others.
func (d *Directory) Verify(wrapper []byte, from, to string, back bool, now time.Time) error {
	p, _ := d.configuredPeer(from)
	if p.VerifyKey == "" {
		return nil
	}
	key, err := signature.ParsePublic(p.VerifyKey)
	if err != nil {
		return fmt.Errorf("[peers.%s] verify_key: %w", from, err)
	}
	return key.Verify(wrapper, signature.Route{Back: back, Target: to}, now)
}

// SetPeers replaces the configured peers. Messages for a removed peer become dead
// letters at their next attempt.
func (d *Directory) SetPeers(peers []config.Peer) {
	d.configured.Store(&peers)
	if d.registry != nil {
		d.registry.SetStatic(static(peers))
	}
}

func unknownPeer(name string) error {
	return fmt.Errorf("unknown swarm endpoint: '%s'; add [peers.%s], or a partner of that name to a gateway, to swarm.toml, or register it with `skep peer add`", name, name)
}

func (d *Directory) registeredToken(name string) (string, error) {
	token, ref := d.registry.Token(name)
	if token != "" || ref == "" {
		return token, nil
	}
	variable := strings.TrimSuffix(strings.TrimPrefix(ref, "${"), "}")
	if d.opt.Env != nil {
		if value, ok := d.opt.Env(variable); ok && value != "" {
			return value, nil
		}
	}
	return "", fmt.Errorf("authentication token missing for swarm '%s': set the variable %s and start the host again", name, variable)
}

// checkPeer refuses a peer without a token, and one whose URL would send the token
// in the clear over public networks. The addresses of a name are checked by the
// client that connects.
func checkPeer(name string, p router.Peer) (router.Peer, error) {
	to, err := egress.ParseGrant(p.BaseURL)
	if err != nil {
		return router.Peer{}, fmt.Errorf("the base_url of swarm '%s' is malformed", name)
	}
	private := p.AllowPrivateNames || p.AllowPrivate && to.Private()
	switch {
	case strings.HasPrefix(strings.ToLower(p.BaseURL), "http://") && !private:
		return router.Peer{}, fmt.Errorf("swarm '%s' is at %s, where anybody on the way could read its token; use https, or set [peers.%s] allow_private = true if it is at a private address", name, p.BaseURL, name)
	case p.Token == "":
		return router.Peer{}, fmt.Errorf("authentication token missing for swarm '%s'; set [peers.%s] auth_token, or register it with one", name, name)
	}
	return p, nil
}

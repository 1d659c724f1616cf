package host

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"skep/host/internal/config"
	"skep/host/internal/egress"
	"skep/host/internal/registry"
	"skep/host/internal/router"
)

// giveUp is how long a letter for a registered swarm is tried.
const giveUp = 30 * time.Second

// peers knows how other swarms are called: those of the file as it says, others as
// they were registered.
type peers struct {
	// file is replaced by a reload, never changed.
	file atomic.Pointer[[]config.Peer]
	// known is nil until the listeners are open.
	known *registry.Registry
	// private lets registered swarms be at private addresses.
	private bool
	// signs lets all letters bear the signature of this host.
	signs bool
	env   func(name string) (string, bool)
}

var _ router.Peers = (*peers)(nil)

func newPeers(file []config.Peer, env func(string) (string, bool)) *peers {
	p := &peers{env: env}
	p.file.Store(&file)
	return p
}

// Peer implements [router.Peers].
func (p *peers) Peer(name string) (router.Peer, error) {
	file := *p.file.Load()
	if i := slices.IndexFunc(file, func(f config.Peer) bool { return f.Name == name }); i >= 0 {
		f := file[i]
		return checked(name, router.Peer{
			BaseURL: f.BaseURL, Token: f.AuthToken.Reveal(), GiveUp: f.GiveUp, BodyToken: f.LegacyBodyToken,
			Private: f.AllowPrivate || p.private, PrivateNames: f.AllowPrivate,
			Signed: p.signs || f.VerifyKey != "",
		})
	}
	if p.known == nil {
		return router.Peer{}, unknownPeer(name)
	}
	e, ok := p.known.Entry(name)
	if !ok || e.Fixed {
		return router.Peer{}, unknownPeer(name)
	}
	token, err := p.token(name)
	if err != nil {
		return router.Peer{}, err
	}
	return checked(name, router.Peer{BaseURL: e.BaseURL, Token: token, GiveUp: giveUp, Private: p.private, Signed: p.signs})
}

// trouble says why letters for a swarm cannot leave.
func (p *peers) trouble(name string) error {
	_, err := p.Peer(name)
	return err
}

// verifyKey is that of what a swarm sends, empty where it need not be signed.
func (p *peers) verifyKey(name string) string {
	file := *p.file.Load()
	i := slices.IndexFunc(file, func(f config.Peer) bool { return f.Name == name })
	if i < 0 {
		return ""
	}
	return file[i].VerifyKey
}

// take puts what the file says now in the place of what it said. Letters for a peer
// that is gone become dead letters at their next attempt.
func (p *peers) take(file []config.Peer) {
	p.file.Store(&file)
	if p.known != nil {
		p.known.SetStatic(static(file))
	}
}

func unknownPeer(name string) error {
	return fmt.Errorf("unknown swarm endpoint: '%s'; add [peers.%s] to swarm.toml, or register it with `skep peer add`", name, name)
}

// token returns that of a registered swarm.
func (p *peers) token(name string) (string, error) {
	token, ref := p.known.Token(name)
	if token != "" || ref == "" {
		return token, nil
	}
	variable := strings.TrimSuffix(strings.TrimPrefix(ref, "${"), "}")
	if p.env != nil {
		if value, ok := p.env(variable); ok && value != "" {
			return value, nil
		}
	}
	return "", fmt.Errorf("authentication token missing for swarm '%s': set the variable %s and start the host again", name, variable)
}

// checked refuses what would show a token to everybody on the way, as far as the
// URL tells: a name's addresses are looked at when it is called.
func checked(name string, p router.Peer) (router.Peer, error) {
	to, err := egress.ParseGrant(p.BaseURL)
	if err != nil {
		return router.Peer{}, fmt.Errorf("the base_url of swarm '%s' is malformed", name)
	}
	near := p.PrivateNames || p.Private && to.Private()
	switch {
	case strings.HasPrefix(strings.ToLower(p.BaseURL), "http://") && !near:
		return router.Peer{}, fmt.Errorf("swarm '%s' is at %s, where anybody on the way could read its token; use https, or set [peers.%s] allow_private = true if it is at a private address", name, p.BaseURL, name)
	case p.Token == "":
		return router.Peer{}, fmt.Errorf("authentication token missing for swarm '%s'; set [peers.%s] auth_token, or register it with one", name, name)
	}
	return p, nil
}

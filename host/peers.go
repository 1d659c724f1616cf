package host

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"skep/host/internal/config"
	"skep/host/internal/registry"
	"skep/host/internal/router"
)

// giveUp is how long a letter for a registered swarm is tried.
const giveUp = 30 * time.Second

// peers knows how other swarms are called: those of the file as it says, others as
// they were registered.
type peers struct {
	file []config.Peer
	// known is nil until the listeners are open.
	known *registry.Registry
	// private lets registered swarms be at private addresses.
	private bool
	env     func(name string) (string, bool)
}

var _ router.Peers = (*peers)(nil)

// Peer implements [router.Peers].
func (p *peers) Peer(name string) (router.Peer, error) {
	if i := slices.IndexFunc(p.file, func(f config.Peer) bool { return f.Name == name }); i >= 0 {
		f := p.file[i]
		return checked(name, router.Peer{
			BaseURL: f.BaseURL, Token: f.AuthToken.Reveal(), GiveUp: f.GiveUp, Private: f.AllowPrivate || p.private,
		})
	}
	if p.known == nil {
		return router.Peer{}, unknownPeer(name)
	}
	known := p.known.Entries()
	i := slices.IndexFunc(known, func(e registry.Entry) bool { return e.Name == name })
	if i < 0 {
		return router.Peer{}, unknownPeer(name)
	}
	token, err := p.token(name)
	if err != nil {
		return router.Peer{}, err
	}
	return checked(name, router.Peer{BaseURL: known[i].BaseURL, Token: token, GiveUp: giveUp, Private: p.private})
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

// checked refuses what would show a token to everybody on the way.
func checked(name string, p router.Peer) (router.Peer, error) {
	u, err := url.Parse(p.BaseURL)
	if err != nil {
		return router.Peer{}, fmt.Errorf("the base_url of swarm '%s' is malformed", name)
	}
	ip, err := netip.ParseAddr(u.Hostname())
	loopback := u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	switch {
	case u.Scheme == "http" && !loopback && !p.Private:
		return router.Peer{}, fmt.Errorf("swarm '%s' is at %s, where anybody on the way could read its token; use https, or set [peers.%s] allow_private = true in a network of your own", name, p.BaseURL, name)
	case p.Token == "":
		return router.Peer{}, fmt.Errorf("authentication token missing for swarm '%s'; set [peers.%s] auth_token, or register it with one", name, name)
	}
	return p, nil
}

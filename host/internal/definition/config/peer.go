package config

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"time"

	"skep/host/internal/api/listener"
	"skep/host/internal/peer/signature"
	"skep/host/internal/turn/egress"
)

// Peer is one [peers.NAME] table: another MAIL server.
type Peer struct {
	Name         string
	BaseURL      string
	AuthToken    Secret
	Public       bool
	Metadata     json.RawMessage
	GiveUp       time.Duration // how long a dead peer is tried
	AllowPrivate bool          // may be at a private or loopback address, by its name too
	// LegacyBodyToken repeats the token in the message, for peers that look there.
	LegacyBodyToken bool
	// VerifyKey is a public key, as [envelope.ParsePublic] reads it: what the peer
	// sends must be signed with it. Empty asks for no signature.
	VerifyKey string
	// CAFile, ClientCert and ClientKey are for calls by https. TLS is what they hold,
	// nil without them.
	CAFile, ClientCert, ClientKey string
	TLS                           *tls.Config
	Pos                           Pos
}

func (p *Peer) Settings() []Setting {
	return []Setting{
		field(&p.BaseURL, "base_url", "URL", (*table).url, "Where it is.").needed("").by(Fixed),
		headerSecret(&p.AuthToken, "auth_token", "What this swarm shows to it; without one it can neither be asked nor answered."),
		boolean(&p.Public, "public", false, "It is listed in `GET /swarms`."),
		field(&p.Metadata, "metadata", "table", (*table).params, "What is listed of it besides."),
		span(&p.GiveUp, "give_up", 30*time.Second, time.Second, 30*day, "How long it is tried while it does not answer."),
		boolean(&p.AllowPrivate, "allow_private", false, "It may be at a private or loopback address, by its name too, and over http.").by(Grant),
		boolean(&p.LegacyBodyToken, "legacy_body_token", false, "The token is repeated in the message, for peers that look there."),
		text(&p.VerifyKey, "verify_key", "Public key: what it sends must be signed with it. Without one no signature is needed.").by(Pinned),
		field(&p.CAFile, "ca_file", "path", (*table).usedFile, "Authorities that vouch for its certificate, in PEM, in place of the system's.").by(Fixed),
		field(&p.ClientCert, "client_cert", "path", (*table).usedFile, "The certificate that it is shown, with its chain, in PEM."),
		field(&p.ClientKey, "client_key", "path", (*table).usedFile, "The private key of `client_cert`, in PEM."),
	}
}

func (d *decoder) peers(t *table, local string, s Server) []Peer {
	var out []Peer
	names, subs := t.named("peers")
	for i, sub := range subs {
		d.checkRealm(sub.keyAsValue(names[i]), "a peer")
		if names[i] == local {
			d.atKey(sub.location, fmt.Sprintf("%q is the name of this swarm; a peer is another", local))
		}
		out = append(out, d.peer(names[i], sub))
		d.checkWay(sub, out[i], s)
		d.needs("peers", sub.location)
	}
	return out
}

// checkWay looks at what would let every letter to a peer fail.
func (d *decoder) checkWay(t *table, p Peer, s Server) {
	at := t.child("base_url")
	if _, err := egress.ParseGrant(p.BaseURL); p.BaseURL != "" && egress.CheckURL(p.BaseURL) == nil && err != nil {
		d.atValue(at, fmt.Sprintf("%s: %s", at.path, errors.Unwrap(err)))
	}
	if !p.AllowPrivate && !s.alone() {
		d.checkAddress(t, "base_url", p.BaseURL)
	}
	if !t.has("auth_token") {
		d.warn(t.location, fmt.Sprintf("%s has no auth_token: this swarm can neither ask %s nor answer it", t.path, p.Name))
	}
}

// checkAddress looks at the address in a key at which another party is called, and never at
// a private address.
func (d *decoder) checkAddress(t *table, key, address string) {
	u, err := url.Parse(address)
	if err != nil {
		return
	}
	at := t.child(key)
	if secure := map[string]string{"http": "https", "iacp": "iacps"}[u.Scheme]; secure != "" && !isLoopback(net.JoinHostPort(u.Hostname(), "80")) {
		d.atValue(at, at.path+": over "+u.Scheme+" anybody on the way could read the token; use "+secure+", or set allow_private = true in a network of your own")
	}
	if host := u.Hostname(); isPrivate(host) {
		d.warn(at, fmt.Sprintf("%s: %s is not a public address; it is called only with allow_private = true in [%s]", at.path, host, t.path))
	}
}

// HasPublicURL reports whether the host's public_url is one that others elsewhere may
// reach: it is set, and neither this machine nor a literal address that is not public.
func (s Server) HasPublicURL() bool {
	u, err := url.Parse(s.PublicURL)
	return err == nil && u.Hostname() != "" && !isPrivate(u.Hostname())
}

// isPrivate reports whether a host of a URL is this machine or a literal address that is
// not public.
func isPrivate(host string) bool {
	ip, err := netip.ParseAddr(host)
	ip = ip.Unmap()
	return host == "localhost" || err == nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified())
}

func (d *decoder) peer(name string, t *table) Peer {
	p := Peer{Name: name, Pos: d.pos(t.location)}
	t.read(p.Settings())
	if _, err := signature.ParsePublic(p.VerifyKey); t.has("verify_key") && err != nil {
		d.atValue(t.child("verify_key"), t.child("verify_key").path+": "+err.Error())
	}
	d.peerTLS(t, &p)
	t.refuseUnknown()
	return p
}

// peerTLS reads the files for calls of a peer. One that is missing has its fault.
func (d *decoder) peerTLS(t *table, p *Peer) {
	for key, path := range map[string]string{"ca_file": p.CAFile, "client_cert": p.ClientCert, "client_key": p.ClientKey} {
		if t.has(key) && path == "" {
			return
		}
	}
	var err error
	p.TLS, err = listener.ClientFiles{CA: p.CAFile, Cert: p.ClientCert, Key: p.ClientKey}.Load(d.opt.Now)
	switch u, _ := url.Parse(p.BaseURL); {
	case err != nil:
		d.atKey(t.location, fmt.Sprintf("%s: %s", t.path, err))
	case p.TLS != nil && u != nil && u.Scheme == "http":
		d.atKey(t.location, fmt.Sprintf("%s: ca_file, client_cert and client_key need an https base_url; over http there are no certificates", t.path))
	case p.ClientKey != "":
		d.checkKeyFile(t.child("client_key"), p.ClientKey)
	}
}

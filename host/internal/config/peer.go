package config

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"time"

	"skep/host/internal/envelope"
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
	Pos       Pos
}

func (d *decoder) peers(t *table, local string, s Server) []Peer {
	var out []Peer
	names, subs := t.named("peers")
	for i, sub := range subs {
		d.checkName(sub.keyAsValue(names[i]), "a peer", true)
		if names[i] == local {
			d.atKey(sub.spot, fmt.Sprintf("%q is the name of this swarm; a peer is another", local))
		}
		out = append(out, d.peer(names[i], sub))
		d.checkWay(sub, out[i], s)
		d.needs("peers", sub.spot)
	}
	return out
}

// checkWay looks at what would let every letter to a peer fail.
func (d *decoder) checkWay(t *table, p Peer, s Server) {
	u, err := url.Parse(p.BaseURL)
	if err == nil && u.Scheme == "http" && !p.AllowPrivate && !isLoopback(net.JoinHostPort(u.Hostname(), "80")) && !s.alone() {
		d.atValue(t.child("base_url"), fmt.Sprintf("%s: over http anybody on the way could read the token; use https, or set allow_private = true in a network of your own",
			t.child("base_url").path))
	}
	if !t.has("auth_token") {
		d.warn(t.spot, fmt.Sprintf("%s has no auth_token: this swarm can neither ask %s nor answer it", t.path, p.Name))
	}
}

func (d *decoder) peer(name string, t *table) Peer {
	p := Peer{
		Name:         name,
		BaseURL:      t.url("base_url"),
		AuthToken:    Secret(t.text("auth_token", "")),
		Public:       t.boolean("public", false),
		Metadata:     t.params("metadata"),
		GiveUp:       t.duration("give_up", 30*time.Second, within(time.Second, 30*24*time.Hour)),
		AllowPrivate: t.boolean("allow_private", false),
		Pos:          d.pos(t.spot),

		LegacyBodyToken: t.boolean("legacy_body_token", false),
		VerifyKey:       t.text("verify_key", ""),
	}
	if _, err := envelope.ParsePublic(p.VerifyKey); t.has("verify_key") && err != nil {
		d.atValue(t.child("verify_key"), t.child("verify_key").path+": "+err.Error())
	}
	if !t.has("base_url") {
		t.missing("base_url", "")
	}
	t.done()
	return p
}

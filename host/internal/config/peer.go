package config

import (
	"encoding/json"
	"fmt"
	"time"
)

// Peer is one [peers.NAME] table: another MAIL server.
type Peer struct {
	Name         string
	BaseURL      string
	AuthToken    Secret
	Public       bool
	Metadata     json.RawMessage
	GiveUp       time.Duration // how long a dead peer is tried
	AllowPrivate bool          // may be at a private or loopback address
	Pos          Pos
}

func (d *decoder) peers(t *table, local string) []Peer {
	var out []Peer
	names, subs := t.named("peers")
	for i, sub := range subs {
		d.checkName(sub.keyAsValue(names[i]), "a peer", true)
		if names[i] == local {
			d.atKey(sub.spot, fmt.Sprintf("%q is the name of this swarm; a peer is another", local))
		}
		out = append(out, d.peer(names[i], sub))
		d.needs("peers", sub.spot)
	}
	return out
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
	}
	if !t.has("base_url") {
		t.missing("base_url", "")
	}
	t.done()
	return p
}

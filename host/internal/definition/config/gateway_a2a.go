package config

import (
	"fmt"

	"skep/host/internal/api/oidc"
)

// A2A has the keys that only [gateways.a2a] has.
type A2A struct {
	V03, Push, SignCards bool
}

// A2APartner has the keys that only partners of [gateways.a2a] have.
type A2APartner struct {
	Card string
	Keys []string // JSON Web Keys; empty for cards of any signature
}

var a2aProtocol = protocol{
	users: true, called: true, lacks: []string{"profile", "sessions", "ids"}, rights: []string{"ask"},
	keys:    func() Keys { return new(A2A) },
	partner: func() Keys { return new(A2APartner) },
}

// checkShared refuses what hosts that share a server cannot do together. t is the gateway's table.
func (a *A2A) checkShared(t *table) {
	for _, c := range []struct {
		on       bool
		key, why string
	}{
		{a.Push, "push", "only the host that was asked would push, and none after its loss"},
		{a.SignCards, "sign_cards", "each host has a key of its own"},
	} {
		at := t.location
		if t.has(c.key) {
			at = t.child(c.key)
		}
		if c.on {
			t.d.atKey(at, fmt.Sprintf("[gateways.a2a] together with [cluster] needs %s = false: %s", c.key, c.why))
		}
	}
}

// Settings are the keys of the gateway.
func (a *A2A) Settings() []Setting {
	return []Setting{
		boolean(&a.V03, "v03", true, "Version 0.3 of the protocol is spoken besides 1.0."),
		boolean(&a.Push, "push", true, "Callers may have answers pushed to an address of theirs.").by(Grant),
		boolean(&a.SignCards, "sign_cards", true, "Agent cards are signed; the public keys are at `/a2a/keys.json`."),
	}
}

// publicKeys reads JSON Web Keys.
func (t *table) publicKeys(key string) []string {
	items := t.list(key)
	for _, v := range items {
		if err := oidc.CheckKeySet(`{"keys":[` + v.text + `]}`); err != nil {
			t.d.atValue(v.location, fmt.Sprintf(`%s must be a public JSON Web Key, as in "file::shop.jwk"`, v.path))
		}
	}
	return textsOf(items)
}

// Settings are the keys of a partner.
func (p *A2APartner) Settings() []Setting {
	return []Setting{
		field(&p.Keys, "keys", "list of keys", (*table).publicKeys, "JSON Web Keys, as in `file::shop.jwk`: its card must be signed with one of them.").by(Subset),
		field(&p.Card, "card", KindURL, (*table).url, "Its agent card, where `url` does not lead to it.").by(Fixed),
	}
}

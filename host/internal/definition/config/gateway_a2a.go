package config

// A2A has the keys that only [gateways.a2a] has.
type A2A struct {
	V03, Push, SignCards bool
}

// A2APartner has the keys that only partners of [gateways.a2a] have.
type A2APartner struct {
	Card string
}

var a2aProtocol = protocol{
	users: true, called: true,
	keys:    func() Keys { return new(A2A) },
	partner: func() Keys { return new(A2APartner) },
}

// Settings are the keys of the gateway.
func (a *A2A) Settings() []Setting {
	return []Setting{
		boolean(&a.V03, "v03", true, "Version 0.3 of the protocol is spoken besides 1.0."),
		boolean(&a.Push, "push", true, "Callers may have answers pushed to an address of theirs.").by(Grant),
		boolean(&a.SignCards, "sign_cards", true, "Agent cards are signed with the key that `skep gateway key` shows."),
	}
}

// Settings are the keys of a partner.
func (p *A2APartner) Settings() []Setting {
	return []Setting{
		field(&p.Card, "card", "URL", (*table).url, "Its agent card, where `url` does not lead to it.").by(Fixed),
	}
}

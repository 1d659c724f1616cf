package acp

import (
	"context"
	"encoding/json"
	"maps"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/message"
	"skep/host/internal/gateway/wire"
)

// isRelayed reports whether a message is for another member of its sender's realm. An agent
// of ours with that name comes first.
func (g *Gateway) isRelayed(c gateway.Caller, h message.Header) bool {
	p, ok := g.Runtime.Partner(c.Realm)
	if !ok || !c.May.Has(gateway.MayRelay) || !p.Owns(string(h.Receiver)) {
		return false
	}
	_, err := g.agentOf(c, string(h.Receiver))
	return err != nil
}

// relay hands a message to a member of its sender's realm: on an open connection, or in the
// mailbox, where it is once and durable. Only its hop field is changed.
func (g *Gateway) relay(ctx context.Context, c gateway.Caller, in incoming) (duplicate bool, err error) {
	h := in.Header
	hops := gateway.ExtensionHops(h.Extra[extraHops])
	if err := g.Runtime.CheckRelay(c, gateway.Relayed{From: string(h.Sender), To: string(h.Receiver), Hops: hops}); err != nil {
		return false, err
	}
	m := in.Message
	m.Header.Extra = maps.Clone(h.Extra)
	if m.Header.Extra == nil {
		m.Header.Extra = map[string]json.RawMessage{}
	}
	m.Header.Extra[extraHops] = wire.MustEncode(hops + 1)
	text, err := m.MarshalJSON()
	if err != nil {
		return false, err
	}
	if !in.toMailbox {
		if s, err := g.deliverOpen(ctx, c, m.Header.Receiver, text); s != nil && err == nil {
			return false, nil
		}
	}
	return g.keep(ctx, c, m, text)
}

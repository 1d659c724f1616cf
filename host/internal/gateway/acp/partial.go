package acp

import (
	"context"
	"errors"
	"net/http"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/message"
	"skep/host/internal/gateway/state"
)

// isPartial reports whether a message is progress before an answer, as the gateway itself
// writes it.
func isPartial(h message.Header) bool {
	return h.Type == message.MessageTypeInform && gateway.ExtensionText(h.Extra[extraProgress]) == partial
}

// showPartial shows the progress of a question of ours to the readers of its task. It is no
// mail, and the question goes on waiting.
func (g *Gateway) showPartial(ctx context.Context, c gateway.Caller, in incoming) error {
	if err := g.Runtime.CheckRate(c); err != nil {
		return err
	}
	h := in.Header
	name, id, named := splitID(value(h.ReplyTo))
	if !named {
		name = threadName(value(h.ConversationID), string(h.Sender))
	}
	t, _, err := state.Load[thread](ctx, g.records, threadKey(c.Principal.Tenant, c.Realm, name))
	if err != nil {
		return err
	}
	i := t.find(id)
	if h.ReplyTo == nil && len(t.Open) == 1 {
		i = 0
	}
	switch {
	case i < 0 && h.ReplyTo != nil:
		return unmatched(h)
	case i < 0:
		return &fault{code: codeReceiver, text: `x_progress is "partial", and reply_to is missing: which question is meant is unknown`, status: http.StatusNotFound}
	case !g.isFor(h, t.Open[i].Sent):
		return misdirected(h, messageID(name, t.Open[i].ID), t.Open[i].Sent.From)
	}
	err = g.Runtime.Show(ctx, *t.Open[i].Sent.Delivery(), gateway.Piece{Kind: gateway.Progress, Text: in.Body})
	if errors.Is(err, gateway.ErrUnknown) {
		err = nil // our task is gone
	}
	return err
}

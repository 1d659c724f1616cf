package capability

import (
	"context"

	"skep/abi"
)

// maxSearches bounds the calls of discover_swarms in a turn.
const maxSearches = 4

// discoverHandler handles a MAIL tool that queries other hosts. It returns false for all
// others.
func (o *ops) discoverHandler(req []byte) (handler, bool) {
	var ask abi.MailRequest
	if o.turn == nil || !o.turn.MayDiscover() || decode(abi.OpMail, req, &ask) != nil {
		return handler{}, false
	}
	search := o.turn.DiscoveryCall(ask)
	if search == nil {
		return handler{}, false
	}
	return handler{effect: func(o *ops, _ context.Context, _ []byte, _ bool) (effectFunc, *abi.Error) {
		if o.costs.searches++; o.costs.searches > maxSearches {
			return nil, abi.Errorf(abi.CodeLimit, abi.OpMail, "searches", "a turn may call %s %d times", ask.Tool, maxSearches)
		}
		return func(ctx context.Context, out *asyncOp) *abi.Error {
			answer, fault := search(ctx)
			if fault != nil {
				return fault
			}
			text, fault := encode(abi.OpMail, answer)
			if fault != nil {
				return fault
			}
			return out.write(text)
		}, nil
	}}, true
}

// withMailTool marks the reply as the answer of a MAIL tool, to be staged once the guest
// has it.
func (r *reply) withMailTool(req []byte) *reply {
	var ask abi.MailRequest
	if r.call.op == abi.OpMail && decode(abi.OpMail, req, &ask) == nil {
		r.mailTool = &ask
	}
	return r
}

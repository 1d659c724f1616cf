package capability

import (
	"context"

	"skep/abi"
)

// maxSearches is how many calls of discover_swarms a turn may make.
const maxSearches = 4

// leaves tells the MAIL tool that asks other hosts from those that wait for
// nothing.
func (o *ops) leaves(req []byte) (handler, bool) {
	var ask abi.MailRequest
	if o.turn == nil || !o.turn.Discovers() || decode(abi.OpMail, req, &ask) != nil {
		return handler{}, false
	}
	search := o.turn.Discovery(ask)
	if search == nil {
		return handler{}, false
	}
	return handler{effect: func(o *ops, _ context.Context, _ []byte, _ bool) (work, *abi.Error) {
		if o.spent.searches++; o.spent.searches > maxSearches {
			return nil, abi.Errorf(abi.CodeLimit, abi.OpMail, "searches", "a turn may call %s %d times", ask.Tool, maxSearches)
		}
		return func(ctx context.Context, out *flight) *abi.Error {
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

// searched makes the reply to an effect that is the call of a MAIL tool a part of
// the turn's mail once the guest knows it.
func (r *reply) searched(req []byte) *reply {
	var ask abi.MailRequest
	if r.call.op == abi.OpMail && decode(abi.OpMail, req, &ask) == nil {
		r.tool = &ask
	}
	return r
}

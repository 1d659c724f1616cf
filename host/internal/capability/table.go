package capability

import (
	"context"
	"encoding/json"

	"skep/abi"
	"skep/host/internal/swarm"
)

// table says how each op is done that this host has built.
type table map[abi.Op]handler

// handler is how one op is done. One of now, immediate, nested and effect is
// set, or by alone. None of them knows that calls are recorded.
type handler struct {
	// now does an op that waits for nothing outside the host, on the turn's
	// goroutine.
	now func(o *ops, ctx context.Context, req []byte) ([]byte, *abi.Error)
	// by, where it is set, is asked first: calls that it returns an effect for are
	// done by that.
	by func(o *ops, req []byte) (handler, bool)
	// again says that the op changes the turn, so that a turn that is run again
	// does it again.
	again bool
	// immediate prepares a change of a value that is decided at once.
	immediate func(o *ops, ctx context.Context, req []byte) (change, *abi.Error)
	// nested runs an action, whose ops are o. It is run again with the turn.
	nested func(o *ops, ctx context.Context, req []byte) ([]byte, *abi.Error)
	// ran is what a nested action runs on, for the record.
	ran json.RawMessage
	// effect prepares an op that leaves the host: it checks the grant and the
	// request on the turn's goroutine, where the turn may be used. A guest that
	// asks for a stream reads the answer as it comes.
	effect func(o *ops, ctx context.Context, req []byte, stream bool) (work, *abi.Error)
	// streams says that a guest may read the effect's answer as it comes; else
	// it gets it whole.
	streams bool
	// most is what is reserved for an effect that costs money.
	most swarm.Spend
	// once, where it is set, reports whether a request must not be sent again
	// when nobody knows what became of it.
	once func(o *ops, req []byte) bool
}

// work is the part of an effect that waits for the world. It runs on a goroutine
// of its own and must not use the turn; it returns soon after ctx ends. It sends
// out.key with its request, and writes its answer whole, or piece by piece where
// it is a stream.
type work func(ctx context.Context, out *flight) *abi.Error

// builtin returns the handlers of all ops that are built.
func builtin() table {
	plain := func(f func(o *ops, req []byte) ([]byte, *abi.Error)) handler {
		return handler{now: func(o *ops, _ context.Context, req []byte) ([]byte, *abi.Error) { return f(o, req) }, again: true}
	}
	bare := func(f func(o *ops) ([]byte, *abi.Error)) func(*ops, context.Context, []byte) ([]byte, *abi.Error) {
		return func(o *ops, _ context.Context, _ []byte) ([]byte, *abi.Error) { return f(o) }
	}
	letters := plain((*ops).mail)
	letters.by = (*ops).leaves
	return table{
		abi.OpLog:      plain((*ops).log),
		abi.OpClockNow: {now: bare((*ops).clockNow)},
		abi.OpRandom:   {now: bare((*ops).random), again: true},
		abi.OpHistory:  {now: (*ops).history},
		abi.OpMail:     letters,
		abi.OpEmit:     plain((*ops).emit),
		abi.OpAction:   {by: (*ops).acts},

		abi.OpKVGet:    {now: (*ops).kvGet},
		abi.OpKVList:   {now: (*ops).kvList},
		abi.OpKVPut:    staged((*ops).kvPut),
		abi.OpKVDelete: staged((*ops).kvDelete),
		abi.OpKVCas:    {immediate: (*ops).kvCas},

		abi.OpTimerSet:    staged((*ops).timerSet),
		abi.OpTimerCancel: staged((*ops).timerCancel),

		abi.OpMetric: staged((*ops).metric),
		abi.OpSpan:   staged((*ops).span),

		abi.OpBlobGet: {now: (*ops).blobGet},
		abi.OpBlobPut: staged((*ops).blobPut),

		abi.OpHTTPFetch:    {effect: (*ops).fetch, once: (*ops).notTwice},
		abi.OpLLMChat:      {by: (*ops).chats},
		abi.OpSecretExists: {now: (*ops).secretExists},
	}
}

// staged is an op that does no more than to stage. What was refused to an
// earlier attempt is refused again.
func staged(f func(o *ops, ctx context.Context, req []byte) ([]byte, *abi.Error)) handler {
	return handler{again: true, now: func(o *ops, ctx context.Context, req []byte) ([]byte, *abi.Error) {
		if past := o.turn.Repeated(); past != nil && past.Err != nil {
			return nil, past.Err
		}
		return f(o, ctx, req)
	}}
}

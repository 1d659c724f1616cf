package capability

import (
	"context"
	"encoding/json"

	"skep/abi"
	"skep/host/internal/swarm"
)

// table contains the handlers of all ops that this host offers.
type table map[abi.Op]handler

// handler runs one op. Either one of direct, immediate, nested and effect is set, or
// dispatch alone. Handlers do not touch the journal.
type handler struct {
	// direct runs an op that does not leave the host, on the turn's goroutine.
	direct func(o *ops, ctx context.Context, req []byte) ([]byte, *abi.Error)
	// dispatch, if set, is tried first. It may return another handler for the call.
	dispatch func(o *ops, req []byte) (handler, bool)
	// restaged is set if the op changes the turn, so that a re-run must run it again.
	restaged bool
	// immediate prepares a compare-and-set.
	immediate func(o *ops, ctx context.Context, req []byte) (casChange, *abi.Error)
	// nested runs an action; o are its ops. A re-run runs it again.
	nested func(o *ops, ctx context.Context, req []byte) ([]byte, *abi.Error)
	// record is what a nested action runs on, for the journal.
	record json.RawMessage
	// effect prepares an op that leaves the host. It checks grant and request on the
	// turn's goroutine, where it may use the turn. stream is set if the guest reads the
	// answer as it comes.
	effect func(o *ops, ctx context.Context, req []byte, stream bool) (effectFunc, *abi.Error)
	// streams is set if the guest may read the answer as it comes; otherwise it gets the
	// whole answer.
	streams bool
	// maxCost is the cost to reserve for an effect, a call of model.
	maxCost swarm.Spend
	model   string
	// noRetry, if set, reports whether a request with an unknown outcome must not be sent
	// again.
	noRetry func(o *ops, req []byte) bool
	// outlives is set if the effect holds nothing of its turn, so that it can go on while the turn
	// has no sandbox.
	outlives bool
}

// effectFunc is the blocking part of an effect. It runs on its own goroutine, must not use
// the turn, and returns soon after ctx ends. It sends out.key with its request, and writes
// its answer whole or, for a stream, in pieces.
type effectFunc func(ctx context.Context, out *asyncOp) *abi.Error

// builtinOps returns the handlers of all ops.
func builtinOps() table {
	withoutContext := func(f func(o *ops, req []byte) ([]byte, *abi.Error)) handler {
		return handler{direct: func(o *ops, _ context.Context, req []byte) ([]byte, *abi.Error) { return f(o, req) }, restaged: true}
	}
	withoutRequest := func(f func(o *ops) ([]byte, *abi.Error)) func(*ops, context.Context, []byte) ([]byte, *abi.Error) {
		return func(o *ops, _ context.Context, _ []byte) ([]byte, *abi.Error) { return f(o) }
	}
	mail := withoutContext((*ops).mail)
	mail.dispatch = (*ops).discoverHandler
	return table{
		abi.OpLog:      withoutContext((*ops).log),
		abi.OpClockNow: {direct: withoutRequest((*ops).clockNow)},
		abi.OpRandom:   {direct: withoutRequest((*ops).random), restaged: true},
		abi.OpHistory:  {direct: (*ops).history},
		abi.OpMail:     mail,
		abi.OpEmit:     withoutContext((*ops).emit),
		abi.OpAction:   {dispatch: (*ops).actionHandler},

		abi.OpKVGet:    {direct: (*ops).kvGet},
		abi.OpKVList:   {direct: (*ops).kvList},
		abi.OpKVPut:    withReplayedRefusal((*ops).kvPut),
		abi.OpKVDelete: withReplayedRefusal((*ops).kvDelete),
		abi.OpKVCas:    {immediate: (*ops).kvCas},

		abi.OpTimerSet:    withReplayedRefusal((*ops).timerSet),
		abi.OpTimerCancel: withReplayedRefusal((*ops).timerCancel),

		abi.OpMetric: withReplayedRefusal((*ops).metric),
		abi.OpSpan:   withReplayedRefusal((*ops).span),

		abi.OpBlobGet: {direct: (*ops).blobGet},
		abi.OpBlobPut: withReplayedRefusal((*ops).blobPut),

		abi.OpHTTPFetch:    {effect: (*ops).fetch, noRetry: (*ops).retryForbidden, outlives: true},
		abi.OpLLMChat:      {dispatch: (*ops).chatHandler},
		abi.OpSecretExists: {direct: (*ops).secretExists},
	}
}

// withReplayedRefusal returns the handler of an op that a re-run runs again. A call that
// an earlier attempt refused is refused again, whether there is room for it now or not.
func withReplayedRefusal(f func(o *ops, ctx context.Context, req []byte) ([]byte, *abi.Error)) handler {
	return handler{restaged: true, direct: func(o *ops, ctx context.Context, req []byte) ([]byte, *abi.Error) {
		if past := o.turn.ReplayedEntry(); past != nil && past.Err != nil {
			return nil, past.Err
		}
		return f(o, ctx, req)
	}}
}

package capability

import (
	"context"
	"sync"
	"sync/atomic"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
)

// Limits of effects.
const (
	maxAsyncOps = 8        // of one turn that run at once; others wait
	maxUnread   = 1 << 20  // bytes at which the writer of a stream waits
	maxAnswer   = 16 << 20 // bytes of an answer that is not streamed
)

// notifier wakes the turn's goroutine, its only receiver. A notification is kept until it
// is received.
type notifier chan struct{}

func (b notifier) notify() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// opGroup is the state that the async ops of a turn share.
type opGroup struct {
	notifier notifier
	slots    chan struct{} // one for each running op
	// maxUnread bounds unread, the bytes of unread answers of all ops; the holder bounds
	// those of all turns.
	holder    holder
	maxUnread int64
	unread    atomic.Int64
}

// holder counts the bytes that the host holds for turns.
type holder interface {
	HoldBytes(n int64) bool
	ReleaseBytes(n int64)
}

func newOpGroup(h holder, most int64) *opGroup {
	return &opGroup{notifier: make(notifier, 1), slots: make(chan struct{}, maxAsyncOps), holder: h, maxUnread: max(most, maxAnswer)}
}

// asyncOp is a running effect and its answer.
type asyncOp struct {
	group *opGroup
	op    abi.Op
	// key is sent with the request, so that the receiver recognizes a retry.
	key string
	// retry is set if an earlier attempt may have sent the request.
	retry  bool
	ctx    context.Context // of the effect
	cancel context.CancelFunc
	// unlink leaves the effect running when the context of its turn ends; it reports false if that
	// has ended already.
	unlink func() bool
	// outlives is set if the effect holds nothing of its turn.
	outlives bool
	done     chan struct{} // closed when the effect is over
	drained  notifier      // notified after a read

	mu sync.Mutex
	// departed is set once the request may have left the host.
	departed bool
	// stream is set if the guest reads the answer as it comes.
	stream   bool
	unread   []byte
	reserved int64 // of the group's unread bytes
	ended    bool
	fault    *abi.Error
	panic    any // of the effect; re-raised on the turn's goroutine
	// cost is the cost so far, as far as it is known.
	cost swarm.Spend
	// usage is what a model has counted.
	usage abi.ChatUsage
	// modelFailure is why a call of a model has failed, nil if it has not.
	modelFailure *swarm.ModelFailure
}

// run runs the effect once there is a slot for it and depart has succeeded.
func (f *asyncOp) run(depart func() *abi.Error, do effectFunc) {
	var fault *abi.Error
	defer close(f.done)
	defer func() { f.finish(fault, recover()) }()
	select {
	case f.group.slots <- struct{}{}:
		defer func() { <-f.group.slots }()
		if fault = depart(); fault == nil {
			f.mu.Lock()
			f.departed = true
			f.mu.Unlock()
			fault = do(f.ctx, f)
		}
	case <-f.ctx.Done():
		fault = f.cancelled(f.ctx)
	}
}

// link cancels the effect when ctx ends.
func (f *asyncOp) link(ctx context.Context) {
	if ctx.Err() != nil {
		f.cancel()
	}
	f.unlink = context.AfterFunc(ctx, f.cancel)
}

// canOutlive reports whether the effect can go on while its turn has no sandbox.
func (f *asyncOp) canOutlive() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.outlives && (f.departed || f.ended)
}

// finish ends the answer. For a cancelled effect the error is the cancellation.
func (f *asyncOp) finish(fault *abi.Error, panicked any) {
	if cancelled := f.cancelled(f.ctx); fault != nil && cancelled != nil {
		fault = cancelled
	}
	f.mu.Lock()
	f.ended, f.fault, f.panic = true, fault, panicked
	if fault != nil && !f.stream {
		f.unread = nil
		f.release(f.reserved)
	}
	f.mu.Unlock()
	f.group.notifier.notify()
}

// write appends to the answer. A stream waits while too much is unread, and fails when it
// is cancelled.
func (f *asyncOp) write(p []byte) *abi.Error {
	for {
		f.mu.Lock()
		switch {
		case f.stream && len(f.unread) < maxUnread, !f.stream && len(f.unread)+len(p) <= maxAnswer:
			if fault := f.reserve(int64(len(p))); fault != nil {
				f.mu.Unlock()
				return fault
			}
			f.unread = append(f.unread, p...)
			f.mu.Unlock()
			f.group.notifier.notify()
			return nil
		case !f.stream:
			f.mu.Unlock()
			return abi.Errorf(abi.CodeLimit, f.op, "answer", "the answer has more than %d bytes", maxAnswer)
		}
		f.mu.Unlock()
		select {
		case <-f.drained:
		case <-f.ctx.Done():
			return f.cancelled(f.ctx)
		}
	}
}

// reserve reserves unread bytes of the group, if there are enough. The caller holds mu.
func (f *asyncOp) reserve(n int64) *abi.Error {
	if f.group.unread.Add(n) > f.group.maxUnread {
		f.group.unread.Add(-n)
		return abi.Errorf(abi.CodeLimit, f.op, "answers", "the answers that the turn has not read have more than %d bytes; read or close them first", f.group.maxUnread)
	}
	if !f.group.holder.HoldBytes(n) {
		f.group.unread.Add(-n)
		return swarm.TurnBuffersFault(f.op)
	}
	f.reserved += n
	return nil
}

// release returns unread bytes to the group. The caller holds mu.
func (f *asyncOp) release(n int64) {
	n = min(n, f.reserved)
	f.reserved -= n
	f.group.unread.Add(-n)
	f.group.holder.ReleaseBytes(n)
}

func (f *asyncOp) setUsage(u abi.ChatUsage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.usage = u
}

func (f *asyncOp) usageSoFar() abi.ChatUsage {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.usage
}

func (f *asyncOp) setModelFailure(why swarm.ModelFailure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.modelFailure = &why
}

func (f *asyncOp) failureOfModel() *swarm.ModelFailure {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.modelFailure
}

// setCost replaces the cost of the effect.
func (f *asyncOp) setCost(cost swarm.Spend) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cost = cost
}

// currentCost returns the cost so far.
func (f *asyncOp) currentCost() swarm.Spend {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cost
}

// readStream moves received bytes of a stream to p.
func (f *asyncOp) readStream(p []byte) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.stream {
		return 0
	}
	n := copy(p, f.unread)
	f.unread = f.unread[n:]
	f.release(int64(n))
	if n > 0 {
		f.drained.notify()
	}
	return n
}

// ready reports whether there is something to read.
func (f *asyncOp) ready() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended || f.stream && len(f.unread) > 0
}

// finished reports whether the effect is over.
func (f *asyncOp) finished() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended
}

// result returns the unread answer of a finished effect.
func (f *asyncOp) result() ([]byte, *abi.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.panic != nil {
		panic(f.panic)
	}
	f.release(f.reserved) // the journal counts it from now on
	return f.unread, f.fault
}

// disableStreaming keeps the rest of the answer until the effect is over.
func (f *asyncOp) disableStreaming() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stream = false
	f.drained.notify()
}

// Close cancels the effect, waits until it is over, and drops its answer.
func (f *asyncOp) Close() {
	f.cancel()
	<-f.done
	f.mu.Lock()
	f.release(f.reserved)
	f.unread = nil
	f.mu.Unlock()
	if f.panic != nil {
		panic(f.panic)
	}
}

func (f *asyncOp) cancelled(ctx context.Context) *abi.Error {
	return turn.CancelledError(ctx, f.op.String())
}

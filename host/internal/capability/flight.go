package capability

import (
	"context"
	"sync"
	"sync/atomic"

	"skep/abi"
	"skep/host/internal/sandbox"
	"skep/host/internal/swarm"
)

// Bounds of effects.
const (
	maxFlights = 8        // of one turn that run at once; others wait their turn
	maxUnread  = 1 << 20  // bytes at which a stream waits for its reader
	maxAnswer  = 16 << 20 // bytes of an answer that is kept whole
)

// bell wakes the turn's goroutine, the only one that waits for it. A ring is
// kept until it is heard.
type bell chan struct{}

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// air is what the flights of a turn share.
type air struct {
	bell  bell
	slots chan struct{} // of flights that run at once
	// most bounds held, the bytes of answers that nobody has read yet: a turn may
	// leave many unread.
	most int64
	held atomic.Int64
}

func newAir(most int64) *air {
	return &air{bell: make(bell, 1), slots: make(chan struct{}, maxFlights), most: max(most, maxAnswer)}
}

// flight is an effect on its way, and its answer.
type flight struct {
	air *air
	op  abi.Op
	// key is what the request carries outside, so that one that is sent again
	// is known.
	key string
	// again says that it may have been sent before.
	again  bool
	ctx    context.Context // the work's
	cancel context.CancelFunc
	done   chan struct{} // closed when the work is over
	room   bell          // rings when something was read

	mu sync.Mutex
	// stream says that the answer is read as it comes.
	stream bool
	unread []byte
	held   int64 // of the air's
	over   bool
	fault  *abi.Error
	panic  any // of the work; the turn's goroutine goes on with it
	// cost is what the work has cost, as far as it is known.
	cost swarm.Spend
}

// fly runs the work, when there is a slot for it and depart has let it go.
func (f *flight) fly(depart func() *abi.Error, do work) {
	var fault *abi.Error
	defer close(f.done)
	defer func() { f.land(fault, recover()) }()
	select {
	case f.air.slots <- struct{}{}:
		defer func() { <-f.air.slots }()
		if fault = depart(); fault == nil {
			fault = do(f.ctx, f)
		}
	case <-f.ctx.Done():
		fault = f.calledOff(f.ctx)
	}
}

// land ends the answer. What a work that was called off says is not the reason.
func (f *flight) land(fault *abi.Error, panicked any) {
	if off := f.calledOff(f.ctx); fault != nil && off != nil {
		fault = off
	}
	f.mu.Lock()
	f.over, f.fault, f.panic = true, fault, panicked
	if fault != nil && !f.stream {
		f.unread = nil
		f.release(f.held)
	}
	f.mu.Unlock()
	f.air.bell.ring()
}

// write appends to the answer. The writer of a stream waits while the reader is
// far behind, and fails when nobody will read on.
func (f *flight) write(p []byte) *abi.Error {
	for {
		f.mu.Lock()
		switch {
		case f.stream && len(f.unread) < maxUnread, !f.stream && len(f.unread)+len(p) <= maxAnswer:
			if !f.hold(int64(len(p))) {
				f.mu.Unlock()
				return abi.Errorf(abi.CodeLimit, f.op, "answers", "the answers that the turn has not read have more than %d bytes; read or close them first", f.air.most)
			}
			f.unread = append(f.unread, p...)
			f.mu.Unlock()
			f.air.bell.ring()
			return nil
		case !f.stream:
			f.mu.Unlock()
			return abi.Errorf(abi.CodeLimit, f.op, "answer", "the answer has more than %d bytes", maxAnswer)
		}
		f.mu.Unlock()
		select {
		case <-f.room:
		case <-f.ctx.Done():
			return f.calledOff(f.ctx)
		}
	}
}

// hold takes bytes of the air, if there are so many. The caller holds mu.
func (f *flight) hold(n int64) bool {
	if f.air.held.Add(n) > f.air.most {
		f.air.held.Add(-n)
		return false
	}
	f.held += n
	return true
}

// release gives bytes back to the air. The caller holds mu.
func (f *flight) release(n int64) {
	n = min(n, f.held)
	f.held -= n
	f.air.held.Add(-n)
}

// charge says what the work costs, in the place of what it has said before.
func (f *flight) charge(cost swarm.Spend) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cost = cost
}

// charged is what the work has cost.
func (f *flight) charged() swarm.Spend {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cost
}

// take moves what has come of a stream to p.
func (f *flight) take(p []byte) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.stream {
		return 0
	}
	n := copy(p, f.unread)
	f.unread = f.unread[n:]
	f.release(int64(n))
	if n > 0 {
		f.room.ring()
	}
	return n
}

// ready reports whether there is something to read.
func (f *flight) ready() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over || f.stream && len(f.unread) > 0
}

// landed reports whether the work is over.
func (f *flight) landed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over
}

// left returns what has not been read of an answer whose work is over.
func (f *flight) left() ([]byte, *abi.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.panic != nil {
		panic(f.panic)
	}
	f.release(f.held) // the journal counts it from now on
	return f.unread, f.fault
}

// whole makes a stream one that is read when it has ended.
func (f *flight) whole() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stream = false
	f.room.ring()
}

// Close calls the work off, waits until it is over, and drops its answer.
func (f *flight) Close() {
	f.cancel()
	<-f.done
	f.mu.Lock()
	f.release(f.held)
	f.unread = nil
	f.mu.Unlock()
	if f.panic != nil {
		panic(f.panic)
	}
}

func (f *flight) calledOff(ctx context.Context) *abi.Error {
	return sandbox.CalledOff(ctx, f.op.String())
}

package wire

import (
	"context"
	"runtime"
	"time"
)

// LargeMessage is the size from which a message needs a place to be read, in bytes.
const LargeMessage = 64 << 10

// LargeReads bounds how many large messages are read, or kept, at once: a decoder takes up to a
// hundred times the size of a message, and the processors that are left serve other callers. A place
// rests for as long as it was held: with callers that send large messages without end, the others' p99
// is 1.9 times as long as alone, and without the rest 2.5 times. The zero value bounds none.
type LargeReads chan struct{}

// NewLargeReads has places for half of the processors.
func NewLargeReads() LargeReads { return make(LargeReads, max(1, runtime.GOMAXPROCS(0)/2)) }

// Yield lets other goroutines run between two passes over a message of size bytes, if it is
// large: Go takes a processor from a goroutine after 10 ms only, and the messages of other
// callers wait for one several times each.
func Yield(size int) {
	if size > LargeMessage {
		runtime.Gosched()
	}
}

// Acquire waits for a place for a message of size bytes, which the caller releases.
func (l LargeReads) Acquire(ctx context.Context, size int) (release func(), err error) {
	if l == nil || size <= LargeMessage {
		return func() {}, nil
	}
	select {
	case l <- struct{}{}:
		began := time.Now()
		return func() { time.AfterFunc(time.Since(began), func() { <-l }) }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

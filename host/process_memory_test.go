package host

import (
	"runtime/metrics"
	"testing"
	"time"
)

// A host that rests after work returns what the work has left.
func TestMemoryIsReturnedAtRest(t *testing.T) {
	defer TuneGC()() // the next collection is far
	for range 64 {
		kept = make([]byte, 1<<20)
	}
	kept = nil
	stop, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		returnMemory(10*time.Millisecond, stop)
	}()
	defer func() { close(stop); <-over }()
	for end := time.Now().Add(time.Minute); unreturned() > heapSlack/4; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes that are free were not returned", unreturned())
		}
	}
}

// kept makes the compiler allocate on the heap.
var kept []byte

// unreturned is how many bytes are free, or garbage, and not returned to the system.
func unreturned() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() + s[1].Value.Uint64() - s[2].Value.Uint64()
}

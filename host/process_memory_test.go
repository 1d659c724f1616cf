package host

import (
	"runtime/metrics"
	"testing"
	"time"
)

// A host that rests after work returns what the work has left.
func TestMemoryIsReturnedAtRest(t *testing.T) {
	defer TuneGC()() // the next collection is far
	for unreturned() < heapSlack/2 {
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

func TestRestsAfterWork(t *testing.T) {
	const mib = 1 << 20
	for name, test := range map[string]struct {
		now, before, returned uint64
		want                  bool
	}{
		"work goes on":              {200 * mib, 100 * mib, 0, false},
		"work that ends":            {201 * mib, 200 * mib, 0, true},
		"the same rest goes on":     {202 * mib, 201 * mib, 201 * mib, false},
		"little since the last one": {221 * mib, 220 * mib, 201 * mib, false},
		"other work":                {301 * mib, 300 * mib, 201 * mib, true},
	} {
		if got := restsAfterWork(test.now, test.before, test.returned); got != test.want {
			t.Errorf("%s: %v", name, got)
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

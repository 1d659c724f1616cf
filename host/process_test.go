package host_test

import (
	"runtime"
	"runtime/debug"
	"testing"

	"skep/host"
)

// With slack the next collection of a small heap is far, unless the operator has
// limited the memory.
func TestTuneGC(t *testing.T) {
	before := goal()
	back := host.TuneGC()
	with := goal()
	back()
	if with < before+64<<20 {
		t.Errorf("the next collection comes at %d bytes, without slack at %d", with, before)
	}
	limit := debug.SetMemoryLimit(1 << 40)
	defer debug.SetMemoryLimit(limit)
	back = host.TuneGC()
	limited := goal()
	back()
	if limited >= with {
		t.Errorf("with a limit of memory the next collection comes at %d bytes, without at %d", limited, with)
	}
}

// goal is the size of the heap at which the next collection comes.
func goal() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NextGC
}

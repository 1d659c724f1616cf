package gatewaytest

import (
	"os"
	"runtime"
	"strconv"

	"skep/host/internal/gateway"
)

// Footprint is what the process holds: bytes of heap and stacks, and goroutines.
func Footprint() (bytes int64, goroutines int) {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()
}

// Unrecorded is a runtime that keeps no events: what the tests would keep of them is not the
// gateway's.
type Unrecorded struct{ gateway.Runtime }

// Record keeps nothing.
func (Unrecorded) Record(gateway.Event) {}

// Sockets is how many sockets or streams a test of their memory opens: SKEP_TEST_SOCKETS, else n.
func Sockets(n int) int {
	if asked, err := strconv.Atoi(os.Getenv("SKEP_TEST_SOCKETS")); err == nil {
		return asked
	}
	return n
}

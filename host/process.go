package host

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// heapSlack is how many bytes a heap may grow by before it is collected, however
// small it is.
const heapSlack = 64 << 20

// TuneGC reduces the garbage collections of a small heap; restore undoes it. It
// changes the whole process: a program calls it once, before [New].
//
// A host under load has some 15 MiB of live heap and makes 100 KiB of garbage for
// each message. Go would collect it twenty times a second, which takes a tenth of
// the processor time. An allocated block that is never written counts as live heap
// and takes no memory, and delays the next collection by its size. On a large heap
// its effect is small, unlike the effect of a higher GOGC. What becomes free is returned
// when the host rests. If the operator limits the memory (GOMEMLIMIT), TuneGC does nothing.
func TuneGC() (restore func()) {
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return func() {}
	}
	block, stop := make([]byte, heapSlack), make(chan struct{})
	go returnMemory(restTime, stop)
	return sync.OnceFunc(func() {
		close(stop)
		runtime.KeepAlive(block)
	})
}

// restTime is how long a host rests until its free memory is returned.
const restTime = time.Minute

// returnMemory returns free memory to the system when the host rests after work, until stop is
// closed: Go keeps as much as the next collection allows, heapSlack included.
func returnMemory(rest time.Duration, stop <-chan struct{}) {
	tick := time.NewTicker(rest)
	defer tick.Stop()
	for returned, before := uint64(0), allocated(); ; {
		select {
		case <-tick.C:
		case <-stop:
			return
		}
		now := allocated()
		if restsAfterWork(now, before, returned) {
			debug.FreeOSMemory()
			returned = now
		}
		before = now
	}
}

// restsAfterWork reports whether a host that has allocated now bytes, and before bytes when the rest
// began, rests, and has left garbage since memory was returned. One that works a little keeps its
// memory: it would need it again.
func restsAfterWork(now, before, returned uint64) bool {
	return now-before < heapSlack/8 && now-returned > heapSlack/2
}

// allocated is how many bytes were allocated since the start.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// ReserveProcessor adds one to GOMAXPROCS for the host's own work, and returns how
// many guests may compute at once, for [Options]; restore undoes it. It changes the
// whole process: a program calls it once, before [New].
//
// Go never preempts a guest's code, and its scheduler polls the network and timers
// only when a processor (P) is idle. With as many guests as processors none is
// idle, and each step of the host's own work, such as reading requests, writing
// and answering, waits for 10 ms. With one processor more, the operating system
// shares the cores between guests and host.
func ReserveProcessor() (guests int, restore func()) {
	guests = runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(guests + 1)
	return guests, func() { runtime.GOMAXPROCS(guests) }
}

package host

import "runtime"

// Room makes room for the host beside its guests, and returns how many guests may
// compute at once, for [Options]; back undoes it. It changes the whole process:
// a program calls it once, before [New].
//
// A guest's code is never preempted, and Go's scheduler looks at the network and
// at timers when a processor of its has nothing to run. With as many guests as
// processors none ever has, and what the host does for everybody, writing,
// answering, reading requests, waits for 10 ms at every step. So there is one
// processor more than guests; who gets the machine's cores then is up to the
// system.
func Room() (guests int, back func()) {
	guests = runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(guests + 1)
	return guests, func() { runtime.GOMAXPROCS(guests) }
}

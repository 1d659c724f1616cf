package simulation

import (
	"errors"
	"math/rand/v2"
	"time"
)

// gate is what an actor waits to do, which decides the faults that it may meet.
type gate int

const (
	// stepGate meets no fault.
	stepGate gate = iota
	readGate
	writeGate
)

// fault is what happens to an actor at its gate.
type fault int

const (
	noFault fault = iota
	// failsOnce fails one call.
	failsOnce
	// failsSecond and failsMinute begin an outage of all calls of the kind.
	failsSecond
	failsMinute
	// slow delays the call.
	slow
	// unreported makes a write durable and reports that it failed.
	unreported
	// outage fails a call during an outage.
	outage
	// hostDied ends the call: its host is dead.
	hostDied
)

func (f fault) String() string {
	return [...]string{"", " FAILS", " FAILS FOR A SECOND", " FAILS FOR A MINUTE", " SLOW", " UNREPORTED", " FAILS STILL", " DIES"}[f]
}

// errInjected is the error of an injected fault.
var errInjected = errors.New("injected: input/output error")

// faults decides which calls of the store fail.
type faults struct {
	// perMille is how many calls of 1,000 meet a new fault.
	perMille int
	// until is the end of an outage by kind of call.
	until map[gate]time.Time
	count map[fault]int
}

func newFaults(perMille int) *faults {
	return &faults{perMille: perMille, until: map[gate]time.Time{}, count: map[fault]int{}}
}

func (f *faults) choose(rng *rand.Rand, g gate) (chosen fault) {
	if g == stepGate {
		return noFault
	}
	defer func() { f.count[chosen]++ }()
	if time.Now().Before(f.until[g]) {
		return outage
	}
	if rng.IntN(1000) >= f.perMille {
		return noFault
	}
	switch n := rng.IntN(10); {
	case n < 4:
		return failsOnce
	case n < 6:
		f.until[g] = time.Now().Add(time.Second)
		return failsSecond
	case n < 7:
		f.until[g] = time.Now().Add(time.Minute)
		return failsMinute
	case n < 9 || g == readGate:
		return slow
	}
	return unreported
}

// stop ends all faults.
func (f *faults) stop() {
	f.perMille = 0
	clear(f.until)
}

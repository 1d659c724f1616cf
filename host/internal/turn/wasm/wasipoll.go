package wasm

import (
	"math"
	"time"
)

// Layout of poll_oneoff's records.
const (
	subSize    = 48
	eventSize  = 32
	pollClock  = 0
	pollFDRead = 1
	pollAbs    = 1 // flag: the timeout is a time, not a span
)

// pollOneoff is poll_oneoff(in, out, n, nevents): a sleep until the first of at
// most 16 clocks. A descriptor in the list is answered at once with an error.
func (r *run) pollOneoff(s []uint64) uint32 {
	in, out, n, count := u32(s[0]), u32(s[1]), u32(s[2]), u32(s[3])
	if n == 0 || n > maxSubs {
		return errnoInval
	}
	subs, ok := r.copyOut(in, n*subSize)
	if _, okOut := r.view(out, n*eventSize); !ok || !okOut {
		return errnoFault
	}
	if _, ok := r.view(count, 4); !ok {
		return errnoFault
	}
	shortest, errno := r.shortestWait(subs)
	if errno != errnoOK {
		return errno
	}
	// Before the sleep: a sleep that is cut short counts as complete.
	events, _ := r.view(out, n*eventSize)
	r.put32(count, r.writeEvents(subs, events, shortest))
	if shortest > 0 {
		r.sleep(shortest)
	}
	return errnoOK
}

// shortestWait returns how long to wait.
func (r *run) shortestWait(subs []byte) (time.Duration, uint32) {
	shortest := time.Duration(math.MaxInt64)
	for ; len(subs) > 0; subs = subs[subSize:] {
		d, errno := r.waitTime(subs)
		if errno != errnoOK {
			return 0, errno
		}
		shortest = min(shortest, d)
	}
	return shortest, errnoOK
}

// waitTime returns how long one subscription waits from now, zero for one that is
// not a clock.
func (r *run) waitTime(sub []byte) (time.Duration, uint32) {
	if sub[8] != pollClock {
		return 0, errnoOK
	}
	if le.Uint32(sub[16:]) > clockMonotonic {
		return 0, errnoInval
	}
	timeout := le.Uint64(sub[24:])
	if le.Uint16(sub[40:])&pollAbs != 0 {
		now := uint64(r.clock.Now().UnixNano())
		timeout -= min(timeout, now)
	}
	return time.Duration(min(timeout, math.MaxInt64)), errnoOK
}

// writeEvents writes the subscriptions that are due after a wait that is about to
// begin, and returns their number.
func (r *run) writeEvents(subs, out []byte, wait time.Duration) (count uint32) {
	clear(out)
	for ; len(subs) > 0; subs = subs[subSize:] {
		isClock := subs[8] == pollClock
		if d, _ := r.waitTime(subs); isClock && d > wait {
			continue
		}
		event := out[count*eventSize:]
		copy(event, subs[:8]) // userdata of the subscription
		if !isClock {
			le.PutUint16(event[8:], errnoNotSup)
		}
		event[10] = subs[8]
		count++
	}
	return count
}

// sleep waits on the turn's clock, without the token. A cancelled turn
// does not sleep.
func (r *run) sleep(d time.Duration) {
	ctx := r.opContext()
	r.withoutToken(func() { _ = r.clock.Sleep(ctx, d) }) // fails only when ctx ends, which is not reported to the guest
}

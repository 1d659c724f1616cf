package skep

import (
	"math"
	"time"

	"skep/sdk/go/internal/abi"
)

// Forever is a timeout that never comes.
const Forever time.Duration = -1

// WaitAny waits until one of several ops has something to read, has ended or has
// failed, and returns the lowest index of such a one. Those that were read to
// their end or closed do not count any more; when none is left it returns -1.
// After the timeout, counted in whole milliseconds, the error is [Deadline]; it
// is [Cancelled] when the turn is called off.
func (t *Turn) WaitAny(timeout time.Duration, ops ...*Pending) (int, error) {
	var handles []int32
	var index []int
	for i, p := range ops {
		switch {
		case p.over:
		case p.err != nil:
			return i, nil // not started, and the reader does not know yet
		default:
			handles, index = append(handles, p.handle), append(index, i)
		}
	}
	if len(handles) == 0 {
		return -1, nil
	}
	n := t.host.Wait(handles, milliseconds(timeout))
	if n < 0 {
		return -1, hostError("wait", abi.Code(-n), t.host.LastError())
	}
	return index[n], nil
}

// WaitAll waits until each of several ops has something to read, has ended or has
// failed. The timeout is for all of them together.
func (t *Turn) WaitAll(timeout time.Duration, ops ...*Pending) error {
	end := t.Now().Add(timeout)
	left := append([]*Pending(nil), ops...)
	for {
		rest := timeout
		if timeout >= 0 {
			rest = max(0, end.Sub(t.Now()))
		}
		i, err := t.WaitAny(rest, left...)
		if err != nil || i < 0 {
			return err
		}
		left = append(left[:i], left[i+1:]...)
	}
}

// milliseconds is a timeout as the host takes it; a part of one counts as one.
func milliseconds(d time.Duration) int32 {
	if d < 0 {
		return -1
	}
	ms := (d + time.Millisecond - 1) / time.Millisecond
	if d > math.MaxInt64-time.Millisecond || ms > math.MaxInt32 {
		return math.MaxInt32
	}
	return int32(ms)
}

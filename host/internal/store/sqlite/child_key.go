package sqlite

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// A child key is parent<<seqBits | seq: all entries of one parent lie side by
// side and in order in one b-tree that is keyed by a plain integer.
const (
	seqBits   = 31
	maxSeq    = 1<<seqBits - 1
	maxParent = 1<<32 - 1
)

// errRange: a number does not fit a child key.
var errRange = errors.New("number out of range")

// checkSeq refuses entry numbers that would run into a neighbour's keys.
func checkSeq(what string, seq int64) error {
	if seq < 1 || seq > maxSeq {
		return fmt.Errorf("%w: %s %d is not in 1..%d", errRange, what, seq, maxSeq)
	}
	return nil
}

// checkParent refuses a parent whose children's keys would overflow.
func checkParent(id int64) error {
	if id < 1 || id > maxParent {
		return fmt.Errorf("%w: the store is full at %d tasks or agents", errRange, maxParent)
	}
	return nil
}

// pack makes a child key of two numbers that were checked before.
func pack(parent, seq int64) int64 { return parent<<seqBits | seq }

// seqOf takes the entry's number out of a child key.
func seqOf(id int64) int64 { return id & maxSeq }

// clampSeq brings a position given by a reader into range.
func clampSeq(seq int64) int64 { return min(max(seq, 0), maxSeq) }

// Times are kept as nanoseconds since 1970, so that they compare as integers.
// What does not fit, the zero time among it, is kept as the nearest that does.
var (
	minTime = time.Unix(0, math.MinInt64)
	maxTime = time.Unix(0, math.MaxInt64)
)

func stamp(t time.Time) int64 {
	switch {
	case !t.After(minTime):
		return math.MinInt64
	case !t.Before(maxTime):
		return math.MaxInt64
	}
	return t.UnixNano()
}

func unstamp(ns int64) time.Time {
	if ns == math.MinInt64 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

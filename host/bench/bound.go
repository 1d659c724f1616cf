package main

import (
	"fmt"
	"time"
)

// bound is a target: how a figure is set against its peer's, and what is wanted.
type bound struct {
	text  string
	ratio func(value, peer float64) float64 // nil: none is shown
	met   func(value, peer float64) bool
}

// none sets a figure against its peer's without a target.
func none() *bound { return &bound{ratio: times} }

func times(value, peer float64) float64 { return value / peer }

// atMost is met by no more than x times what the peer has.
func atMost(x float64) *bound {
	return &bound{fmt.Sprintf("at most %.4gx", x), times, func(v, p float64) bool { return v <= x*p }}
}

// atLeast is met by x times what the peer has, or more.
func atLeast(x float64) *bound {
	return &bound{fmt.Sprintf("at least %.4gx", x), times, func(v, p float64) bool { return v >= x*p }}
}

// ahead is met by more than the peer has.
func ahead() *bound {
	return &bound{"ahead", times, func(v, p float64) bool { return v > p }}
}

// share is met by at most one n-th of what the peer has.
func share(n float64) *bound {
	return &bound{fmt.Sprintf("at most 1/%.4g", n), times, func(v, p float64) bool { return v*n <= p }}
}

// within is met by at most d more than the peer, both in seconds.
func within(d time.Duration) *bound {
	return &bound{fmt.Sprintf("at most %v more", d), nil, func(v, p float64) bool { return v-p <= d.Seconds() }}
}

// below is met by less than d, in seconds, whatever others need.
func below(d time.Duration) *bound {
	return &bound{fmt.Sprintf("below %v", d), nil, func(v, _ float64) bool { return v < d.Seconds() }}
}

// orBelow is also met by less than d, in seconds.
func (b *bound) orBelow(d time.Duration) *bound {
	return &bound{fmt.Sprintf("%s or %v", b.text, d), b.ratio, func(v, p float64) bool { return b.met(v, p) || v < d.Seconds() }}
}

// belowBytes is met by less than n bytes, whatever the peer needs.
func belowBytes(n float64) *bound {
	return &bound{fmt.Sprintf("below %.4g KiB", n/(1<<10)), times, func(v, _ float64) bool { return v < n }}
}

// exactly is met by exactly what the peer has.
func exactly() *bound {
	return &bound{"the same", times, func(v, p float64) bool { return v == p }}
}

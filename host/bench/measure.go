package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// bench measures pairs and reports them.
type bench struct {
	ctx    context.Context
	rounds int
	span   time.Duration
	full   bool
	quick  bool
	report *report
}

// subject is one thing to measure: do runs it for about the span and returns
// how many operations it did and how long that took.
type subject struct {
	name string
	do   func(span time.Duration) (ops int, took time.Duration, err error)
}

// repeated is a subject that calls f again and again.
func repeated(name string, f func() error) subject {
	return subject{name, func(span time.Duration) (int, time.Duration, error) { return repeat(span, f) }}
}

// difference is a subject that takes the cost of one of n things from what has all
// of them and what has none, by a clock.
func difference(name string, n int, clock func() time.Duration, none, all func() error) subject {
	return subject{name, func(span time.Duration) (ops int, took time.Duration, err error) {
		for began := time.Now(); ops == 0 || time.Since(began) < span; ops += n {
			at := clock()
			if err := none(); err != nil {
				return 0, 0, err
			}
			between := clock()
			if err := all(); err != nil {
				return 0, 0, err
			}
			took += clock() - between - (between - at)
		}
		return ops, max(took, time.Nanosecond), nil
	}}
}

// wall is a clock of its own.
func wall() func() time.Duration {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}

// busy is the clock of this process's computing time.
func busy() time.Duration { return time.Duration(processors() * float64(time.Second)) }

// rates measures subjects in turn, round by round, so that a noisy moment hits
// all of them, and returns the median operations a second of each.
func (b *bench) rates(subjects ...subject) ([]float64, error) {
	return b.ratesIn(b.span, subjects...)
}

func (b *bench) ratesIn(span time.Duration, subjects ...subject) ([]float64, error) {
	all := make([][]float64, len(subjects))
	for range b.rounds {
		for i, s := range subjects {
			ops, took, err := s.do(span)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			all[i] = append(all[i], float64(ops)/took.Seconds())
		}
	}
	out := make([]float64, len(subjects))
	for i, r := range all {
		out[i] = median(r)
	}
	return out, nil
}

// costs measures as rates does, a quarter of the time, and returns seconds an
// operation.
func (b *bench) costs(subjects ...subject) ([]float64, error) {
	rates, err := b.ratesIn(b.span/4, subjects...)
	for i, r := range rates {
		rates[i] = 1 / r
	}
	return rates, err
}

// repeat calls f until the span is over.
func repeat(span time.Duration, f func() error) (int, time.Duration, error) {
	begin := time.Now()
	for n := 1; ; n++ {
		if err := f(); err != nil {
			return 0, 0, err
		}
		if took := time.Since(begin); took >= span {
			return n, took, nil
		}
	}
}

// median returns the middle of some values, which it leaves as they are.
func median(values []float64) float64 { return percentile(values, 50) }

// percentile returns the smallest value that p of a hundred do not exceed.
func percentile(values []float64, p int) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}

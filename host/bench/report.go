package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// bench measures pairs and prints them.
type bench struct {
	ctx    context.Context
	rounds int
	span   time.Duration
	out    io.Writer
}

// subject is one thing to measure: do runs it for about the span and returns
// how many operations it did and how long that took.
type subject struct {
	name string
	do   func(span time.Duration) (ops int, took time.Duration, err error)
}

// rates measures subjects in turn, round by round, so that a noisy moment hits
// all of them, and returns the median operations a second of each.
func (b *bench) rates(subjects ...subject) ([]float64, error) {
	all := make([][]float64, len(subjects))
	for range b.rounds {
		for i, s := range subjects {
			ops, took, err := s.do(b.span)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			all[i] = append(all[i], float64(ops)/took.Seconds())
		}
	}
	out := make([]float64, len(subjects))
	for i, r := range all {
		slices.Sort(r)
		out[i] = r[len(r)/2]
	}
	return out, nil
}

// line prints a rate, its time per operation, and its ratio to a peer.
func (b *bench) line(name string, rate float64, peer string, ratio float64, target string) {
	fmt.Fprintf(b.out, "%-46s %12.0f/s %12s", name, rate, time.Duration(float64(time.Second)/rate).Round(10*time.Nanosecond))
	if peer != "" {
		fmt.Fprintf(b.out, "   %6.2fx %s", ratio, peer)
	}
	if target != "" {
		fmt.Fprintf(b.out, " (target %s)", target)
	}
	fmt.Fprintln(b.out)
}

func (b *bench) head() {
	fmt.Fprintf(b.out, "%s %s/%s, %d cores, load %s, %d rounds of %v, medians\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), load(), b.rounds, b.span)
}

func (b *bench) foot() { fmt.Fprintf(b.out, "\nload at the end %s\n", load()) }

// load is the machine's load average, because a figure without it says little.
func load() string {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(raw))[:3], " ")
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

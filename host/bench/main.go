// Command bench owns the comparison of skep with its peers and with physical
// limits: every figure is taken in the same run as the one it is divided by.
// It must not be used to pass or fail anything; machines differ.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 3, "how often each pair is measured; the median counts")
	span := flag.Duration("time", 2*time.Second, "how long one measurement takes")
	only := flag.String("only", "", "measure only this part: turns or posts")
	profile := flag.String("cpuprofile", "", "write a CPU profile of the run to this file")
	flag.Parse()
	stop, err := startProfile(*profile)
	if err == nil {
		err = run(context.Background(), *only, *rounds, *span)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, rounds int, span time.Duration) error {
	b := &bench{ctx: ctx, rounds: rounds, span: span, out: os.Stdout}
	b.head()
	for _, part := range []struct {
		name string
		do   func(*bench) error
	}{{"turns", turns}, {"posts", posts}} {
		if only != "" && only != part.name {
			continue
		}
		if err := part.do(b); err != nil {
			return err
		}
	}
	b.foot()
	return nil
}

// startProfile profiles until stop is called; an empty path profiles nothing.
func startProfile(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); _ = f.Close() }, nil
}

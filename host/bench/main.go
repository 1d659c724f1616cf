// Command bench owns the comparison of skep with its peers and with physical
// limits: every figure is taken in the same run as the one it is divided by.
// It must not be used to pass or fail anything; machines differ.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 3, "how often each pair is measured; the median counts")
	span := flag.Duration("time", 2*time.Second, "how long one measurement takes")
	flag.Parse()
	if err := run(context.Background(), *rounds, *span); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rounds int, span time.Duration) error {
	b := &bench{ctx: ctx, rounds: rounds, span: span, out: os.Stdout}
	b.head()
	for _, part := range []func(*bench) error{turns, posts} {
		if err := part(b); err != nil {
			return err
		}
	}
	b.foot()
	return nil
}

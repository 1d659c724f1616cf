package swarm

import (
	"context"
	"time"
)

// sweepEvery is how often expired submissions are forgotten.
const sweepEvery = time.Hour

// sweep forgets the keys of submissions that are answered and expired, until
// ctx ends.
func (r *Runtime) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if n, err := r.store.Purge(ctx, r.now()); err != nil && ctx.Err() == nil {
			r.log.Error("cannot forget expired submissions", "err", err)
		} else if n > 0 {
			r.log.Info("forgot expired submissions", "count", n)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

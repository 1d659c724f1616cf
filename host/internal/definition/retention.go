package definition

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"skep/host/internal/definition/config"
	"skep/host/internal/swarm"
)

// Times of the [Retention]. A round is short, so that after a change of the configuration
// much is deleted beside the host's other work.
const (
	retainEvery = 10 * time.Minute
	retainSoon  = time.Minute // after the start, and after a round that was cut short
	retainFor   = 20 * time.Second
)

// errRoundTime is the cause that ends a round at [retainFor].
var errRoundTime = errors.New("the round's time is up")

// RetentionStats count what was deleted since the start.
type RetentionStats struct{ Records, Tasks, Modules int64 }

// Retention deletes the records, tasks and copies of modules that the configuration no
// longer keeps.
type Retention struct {
	records, tasks time.Duration // 0 keeps all
	prune          func(ctx context.Context, records, tasks time.Time) (swarm.Pruned, error)
	// named returns the digests of the modules that records name.
	named   func(context.Context) (map[string]bool, error)
	modules *moduleStore
	// mayDrop reports whether rows of modules are dropped.
	mayDrop func() bool
	now     func() time.Time
	log     *slog.Logger

	// swept reports that nothing was pruned since the last sweep of modules.
	swept bool
	// nextDrop is when rows of modules are to be dropped again.
	nextDrop                            time.Time
	prunedRecords, prunedTasks, dropped atomic.Int64
}

// Retention returns the retention of a configuration's [store] settings. The library has
// its runtime.
func (l *Library) Retention(s config.Store) *Retention {
	return &Retention{
		records: s.JournalRetention, tasks: s.HistoryRetention,
		prune: l.swarm.Prune, named: l.namedModules, modules: l.opt.Loader.modules, now: l.opt.Now, log: l.log,
		mayDrop: func() bool { return l.opt.IsAlike == nil || l.opt.IsAlike() },
	}
}

// Run works in rounds until ctx ends.
func (r *Retention) Run(ctx context.Context) {
	timer := time.NewTimer(jitter(retainSoon))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		next := retainEvery
		if !r.work(ctx, r.now()) {
			next = retainSoon
		}
		timer.Reset(jitter(next))
	}
}

// jitter spreads the rounds of hosts that were started together.
func jitter(d time.Duration) time.Duration { return d*9/10 + rand.N(d/5) }

// work keeps the rows of modules and deletes what is too old now. It is false if there was no time for all that is to
// be deleted.
func (r *Retention) work(ctx context.Context, now time.Time) (done bool) {
	r.modules.keepFiles(ctx)
	done = r.round(ctx, now)
	r.dropRows(ctx, now)
	return done
}

// round deletes what is too old now. It is false if the time did not suffice.
func (r *Retention) round(ctx context.Context, now time.Time) (done bool) {
	limited, cancel := context.WithTimeoutCause(ctx, retainFor, errRoundTime)
	defer cancel()
	p, err := r.prune(limited, deadline(now, r.records), deadline(now, r.tasks))
	r.prunedRecords.Add(p.Records)
	r.prunedTasks.Add(p.Tasks)
	if p.Records+p.Tasks > 0 {
		r.swept = false
		r.log.Info("forgot what is no longer kept", "records", p.Records, "tasks", p.Tasks)
	}
	if err == nil && !r.swept {
		err = r.sweepModules(limited)
	}
	switch {
	case err == nil:
		return true
	case ctx.Err() != nil:
	case errors.Is(context.Cause(limited), errRoundTime):
		r.log.Debug("there is more to forget than one round takes")
	default:
		r.log.Error("cannot forget what is no longer kept", "err", err)
	}
	return false
}

// deadline is the time before which entries are deleted, zero if all are kept.
func deadline(now time.Time, kept time.Duration) time.Time {
	if kept == 0 {
		return time.Time{}
	}
	return now.Add(-kept)
}

// sweepModules removes the copies of modules that this host does not use and no record
// names.
func (r *Retention) sweepModules(ctx context.Context) error {
	digests, err := r.modules.unused()
	if err != nil {
		return err
	}
	if len(digests) > 0 {
		named, err := r.named(ctx)
		if err != nil {
			return err
		}
		n, err := r.modules.remove(slices.DeleteFunc(digests, func(d string) bool { return named[d] }))
		r.dropped.Add(int64(n))
		if n > 0 {
			r.log.Info("dropped modules that nothing names any more", "modules", n)
		}
		if err != nil {
			return err
		}
	}
	r.swept = true
	return nil
}

// Stats count what was deleted.
func (r *Retention) Stats() RetentionStats {
	return RetentionStats{Records: r.prunedRecords.Load(), Tasks: r.prunedTasks.Load(), Modules: r.dropped.Load()}
}

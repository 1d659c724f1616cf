package host

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"skep/host/internal/rest"
	"skep/host/internal/swarm"
)

// Times of the [retention]. A round is short, so that a host that has much to
// forget after a change of its configuration does so beside its work.
const (
	retainEvery = 10 * time.Minute
	retainSoon  = time.Minute // after a round that was cut short, and the start
	retainFor   = 20 * time.Second
)

// errRound is the cause with which a round ends that has taken its time.
var errRound = errors.New("the round's time is up")

// retention forgets what the configuration no longer keeps.
type retention struct {
	records, tasks time.Duration // 0 keeps
	prune          func(ctx context.Context, records, tasks time.Time) (swarm.Pruned, error)
	// named returns the digests of the modules that records name.
	named   func(context.Context) (map[string]bool, error)
	modules *moduleStore
	log     *slog.Logger

	// swept says that nothing has changed since modules were looked through.
	swept                               bool
	prunedRecords, prunedTasks, dropped atomic.Int64
}

// run works in rounds until ctx ends.
func (r *retention) run(ctx context.Context) {
	timer := time.NewTimer(jitter(retainSoon))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		next := retainEvery
		if !r.round(ctx, time.Now()) {
			next = retainSoon
		}
		timer.Reset(jitter(next))
	}
}

// jitter keeps hosts that were started together from working together.
func jitter(d time.Duration) time.Duration { return d*9/10 + rand.N(d/5) }

// round forgets what is too old now. It is false when its time was too short.
func (r *retention) round(ctx context.Context, now time.Time) (done bool) {
	limited, cancel := context.WithTimeoutCause(ctx, retainFor, errRound)
	defer cancel()
	p, err := r.prune(limited, before(now, r.records), before(now, r.tasks))
	r.prunedRecords.Add(p.Records)
	r.prunedTasks.Add(p.Tasks)
	if p.Records+p.Tasks > 0 {
		r.swept = false
		r.log.Info("forgot what is no longer kept", "records", p.Records, "tasks", p.Tasks)
	}
	if err == nil && !r.swept {
		err = r.sweep(limited)
	}
	switch {
	case err == nil:
		return true
	case ctx.Err() != nil:
	case errors.Is(context.Cause(limited), errRound):
		r.log.Debug("there is more to forget than one round takes")
	default:
		r.log.Error("cannot forget what is no longer kept", "err", err)
	}
	return false
}

// before is the time before which things go, zero when they are kept.
func before(now time.Time, kept time.Duration) time.Time {
	if kept == 0 {
		return time.Time{}
	}
	return now.Add(-kept)
}

// sweep drops the modules that this host does not use and no record names.
func (r *retention) sweep(ctx context.Context) error {
	digests, err := r.modules.strange()
	if err != nil {
		return err
	}
	if len(digests) > 0 {
		named, err := r.named(ctx)
		if err != nil {
			return err
		}
		n, err := r.modules.drop(unnamed(digests, named))
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

func unnamed(digests []string, named map[string]bool) (out []string) {
	for _, d := range digests {
		if !named[d] {
			out = append(out, d)
		}
	}
	return out
}

// counters are what the retention tells operators.
func (r *retention) counters() []rest.Counter {
	return []rest.Counter{
		{Name: "skep_pruned_records_total", Help: "Records of turns that were kept long enough.", Value: r.prunedRecords.Load()},
		{Name: "skep_pruned_tasks_total", Help: "Tasks that were kept long enough.", Value: r.prunedTasks.Load()},
		{Name: "skep_dropped_modules_total", Help: "Copies of modules that nothing named any more.", Value: r.dropped.Load()},
	}
}

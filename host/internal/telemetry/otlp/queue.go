package otlp

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Bounds of one request to the collector: a batch is sent when it is full, or a second old.
const (
	batchSize = 512
	batchTime = time.Second
)

// Queue holds what waits for an exporter. What finds it full is dropped and counted: the batch
// processors of the SDK do not count for others what they drop.
type Queue[T any] struct {
	export  func(context.Context, []T) error
	items   chan T
	name    string // what it holds
	metric  string
	log     *slog.Logger
	sent    prometheus.Counter
	dropped *prometheus.CounterVec

	ctx      context.Context // of the requests
	cancel   context.CancelFunc
	end      sync.Once
	ending   chan struct{} // closed when nothing comes any more
	done     chan struct{}
	silenced time.Time // when a failure was last logged
}

// QueueOptions are the names and the bound of a queue.
type QueueOptions struct {
	// Name is what there are many of, as "spans"; Title begins a sentence with it, Metric a metric's name.
	Name, Title, Metric string
	// Size bounds how many wait.
	Size int
}

// StartQueue returns a queue, which exports batches until [Queue.Close]. log must not lead into it.
func StartQueue[T any](of QueueOptions, export func(context.Context, []T) error, log *slog.Logger) *Queue[T] {
	q := &Queue[T]{
		export: export, items: make(chan T, of.Size), name: of.Name, metric: of.Metric, log: log, ending: make(chan struct{}), done: make(chan struct{}),
		sent: prometheus.NewCounter(prometheus.CounterOpts{Name: of.Metric + "_sent_total", Help: of.Title + " that the collector has taken."}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: of.Metric + "_dropped_total", Help: of.Title + " that were given up: `queue` as too many waited, `export` as the collector did not take them.",
		}, []string{"reason"}),
	}
	for _, reason := range []string{"queue", "export"} {
		q.dropped.WithLabelValues(reason)
	}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	go q.run()
	return q
}

// Add queues an item, or drops it. It does not wait.
func (q *Queue[T]) Add(item T) {
	select {
	case q.items <- item:
	default:
		q.dropped.WithLabelValues("queue").Inc()
	}
}

// Close sends what waits until ctx ends, and drops the rest. Nothing is added any more.
func (q *Queue[T]) Close(ctx context.Context) {
	q.end.Do(func() { close(q.ending) })
	select {
	case <-q.done:
	case <-ctx.Done():
		q.cancel()
		<-q.done
	}
	q.cancel()
}

// Counts are what was sent and dropped.
func (q *Queue[T]) Counts() []prometheus.Collector {
	return []prometheus.Collector{q.sent, q.dropped}
}

func (q *Queue[T]) run() {
	defer close(q.done)
	for {
		batch, more := q.next()
		if len(batch) > 0 {
			q.send(batch)
		}
		if !more {
			return
		}
	}
}

// next waits for the next batch. more is false for the last one.
func (q *Queue[T]) next() (batch []T, more bool) {
	select {
	case item := <-q.items:
		batch = append(batch, item)
	case <-q.ending:
	}
	full := time.NewTimer(batchTime)
	defer full.Stop()
	for len(batch) < batchSize {
		select {
		case item := <-q.items:
			batch = append(batch, item)
			continue
		case <-full.C:
			return batch, true
		case <-q.ending:
		}
		select { // what is there, without waiting
		case item := <-q.items:
			batch = append(batch, item)
		default:
			return batch, false
		}
	}
	return batch, true
}

func (q *Queue[T]) send(batch []T) {
	err := q.export(q.ctx, batch)
	if err == nil {
		q.sent.Add(float64(len(batch)))
		return
	}
	q.dropped.WithLabelValues("export").Add(float64(len(batch)))
	if now := time.Now(); now.Sub(q.silenced) >= time.Minute {
		q.silenced = now
		// The error quotes the collector's answer, which may be long.
		q.log.Warn("the collector has not taken "+q.name+"; "+q.metric+"_dropped_total counts them", "count", len(batch), "err", fmt.Sprintf("%.500s", err.Error()))
	}
}

package trace

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Bounds of one request to the collector: a batch is sent when it is full, or a second old.
const (
	batchSize = 512
	batchTime = time.Second
)

// queue holds the spans that wait for the exporter. A span that finds it full is dropped and
// counted: the batch processor of the SDK does not count for others what it drops.
type queue struct {
	exporter sdktrace.SpanExporter
	spans    chan sdktrace.ReadOnlySpan
	log      *slog.Logger
	sent     prometheus.Counter
	dropped  *prometheus.CounterVec

	ctx      context.Context // of the requests
	cancel   context.CancelFunc
	end      sync.Once
	ending   chan struct{} // closed when no span comes any more
	done     chan struct{}
	silenced time.Time // when a failure was last logged
}

var _ sdktrace.SpanProcessor = (*queue)(nil)

func startQueue(exporter sdktrace.SpanExporter, size int, log *slog.Logger) *queue {
	q := &queue{
		exporter: exporter, spans: make(chan sdktrace.ReadOnlySpan, size), log: log, ending: make(chan struct{}), done: make(chan struct{}),
		sent: prometheus.NewCounter(prometheus.CounterOpts{Name: "skep_spans_sent_total", Help: "Spans that the collector has taken."}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "skep_spans_dropped_total", Help: "Spans that were given up: `queue` as too many waited, `export` as the collector did not take them.",
		}, []string{"reason"}),
	}
	for _, reason := range []string{"queue", "export"} {
		q.dropped.WithLabelValues(reason)
	}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	go q.run()
	return q
}

// OnStart implements [sdktrace.SpanProcessor].
func (q *queue) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd queues a span, or drops it. It does not wait.
func (q *queue) OnEnd(s sdktrace.ReadOnlySpan) {
	select {
	case q.spans <- s:
	default:
		q.dropped.WithLabelValues("queue").Inc()
	}
}

// ForceFlush implements [sdktrace.SpanProcessor]. Spans go out by themselves.
func (q *queue) ForceFlush(context.Context) error { return nil }

// Shutdown sends the spans that wait until ctx ends, and drops the others. The host makes no
// span any more.
func (q *queue) Shutdown(ctx context.Context) error {
	q.end.Do(func() { close(q.ending) })
	select {
	case <-q.done:
	case <-ctx.Done():
		q.cancel()
		<-q.done
	}
	q.cancel()
	return q.exporter.Shutdown(ctx)
}

func (q *queue) run() {
	defer close(q.done)
	for {
		batch, more := q.next()
		if len(batch) > 0 {
			q.export(batch)
		}
		if !more {
			return
		}
	}
}

// next waits for the next batch. more is false for the last one.
func (q *queue) next() (batch []sdktrace.ReadOnlySpan, more bool) {
	select {
	case s := <-q.spans:
		batch = append(batch, s)
	case <-q.ending:
	}
	full := time.NewTimer(batchTime)
	defer full.Stop()
	for len(batch) < batchSize {
		select {
		case s := <-q.spans:
			batch = append(batch, s)
			continue
		case <-full.C:
			return batch, true
		case <-q.ending:
		}
		select { // what is there, without waiting
		case s := <-q.spans:
			batch = append(batch, s)
		default:
			return batch, false
		}
	}
	return batch, true
}

func (q *queue) export(batch []sdktrace.ReadOnlySpan) {
	err := q.exporter.ExportSpans(q.ctx, batch)
	if err == nil {
		q.sent.Add(float64(len(batch)))
		return
	}
	q.dropped.WithLabelValues("export").Add(float64(len(batch)))
	if now := time.Now(); now.Sub(q.silenced) >= time.Minute {
		q.silenced = now
		// The error quotes the collector's answer, which may be long.
		q.log.Warn("the collector has not taken spans; skep_spans_dropped_total counts them", "spans", len(batch), "err", fmt.Sprintf("%.500s", err.Error()))
	}
}

package trace

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"skep/host/internal/telemetry/otlp"
)

// Options are the settings of a [Sender].
type Options struct {
	otlp.Collector
	// Ratio is the part of the traces that is kept, of those that begin here.
	Ratio float64
	// Queue bounds the spans that wait.
	Queue int
}

// Sender sends spans of what is committed. It implements [swarm.Observer].
type Sender struct {
	exporter *otlptrace.Exporter
	queue    *otlp.Queue[sdktrace.ReadOnlySpan]
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	ratio    sdktrace.Sampler
}

// Open returns a sender, which works until [Sender.Close]. It calls no one before there is
// a span.
func Open(ctx context.Context, opt Options) (*Sender, error) {
	exporter, err := otlptracehttp.New(ctx,
		otlptracehttp.WithEndpointURL(opt.URL("traces")),
		otlptracehttp.WithHeaders(opt.Headers()),
		otlptracehttp.WithTimeout(opt.Timeout),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: otlp.RetryFirst, MaxInterval: otlp.RetryMost, MaxElapsedTime: otlp.RetryFor}),
		otlptracehttp.WithHTTPClient(opt.Client()),
	)
	if err != nil {
		return nil, fmt.Errorf("prepare the export of traces: %w", err)
	}
	held := otlp.QueueOptions{Name: "spans", Title: "Spans", Metric: "skep_spans", Size: opt.Queue}
	s := &Sender{exporter: exporter, queue: otlp.StartQueue(held, exporter.ExportSpans, opt.Logger), ratio: sdktrace.TraceIDRatioBased(opt.Ratio)}
	s.provider = sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // it is decided before
		sdktrace.WithIDGenerator(givenIDs{}),
		sdktrace.WithResource(opt.Describe(ctx)),
		sdktrace.WithRawSpanLimits(spanLimits()),
		sdktrace.WithSpanProcessor(processor{s}),
	)
	s.tracer = s.provider.Tracer("skep", trace.WithInstrumentationVersion(opt.Version), trace.WithSchemaURL(semconv.SchemaURL))
	return s, nil
}

func spanLimits() sdktrace.SpanLimits {
	return sdktrace.SpanLimits{
		AttributeValueLengthLimit: 256, AttributeCountLimit: 32, EventCountLimit: 1, LinkCountLimit: 1,
		AttributePerEventCountLimit: 1, AttributePerLinkCountLimit: 1,
	}
}

// Sample reports whether a trace that begins here is kept.
func (s *Sender) Sample(id [16]byte) bool {
	return s.ratio.ShouldSample(sdktrace.SamplingParameters{ParentContext: context.Background(), TraceID: id}).Decision == sdktrace.RecordAndSample
}

// Register adds the counts of spans to a registry. A nil sender has none.
func (s *Sender) Register(to prometheus.Registerer) (err error) {
	if s == nil {
		return nil
	}
	for _, one := range s.queue.Counts() {
		err = errors.Join(err, to.Register(one))
	}
	return err
}

// Close sends what waits, for a moment, and stops. Closing a nil sender does nothing.
func (s *Sender) Close() error {
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), otlp.CloseGrace)
	defer cancel()
	if err := s.provider.Shutdown(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("end the export of traces: %w", err)
	}
	return nil // what a dead collector has missed is counted and logged
}

// processor queues spans.
type processor struct{ *Sender }

var _ sdktrace.SpanProcessor = processor{}

// OnStart implements [sdktrace.SpanProcessor].
func (processor) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd queues a span, or drops it. It does not wait.
func (p processor) OnEnd(s sdktrace.ReadOnlySpan) { p.queue.Add(s) }

// ForceFlush implements [sdktrace.SpanProcessor]. Spans go out by themselves.
func (processor) ForceFlush(context.Context) error { return nil }

// Shutdown sends the spans that wait until ctx ends, and drops the others. The host makes no span any
// more.
func (p processor) Shutdown(ctx context.Context) error {
	p.queue.Close(ctx)
	return p.exporter.Shutdown(ctx)
}

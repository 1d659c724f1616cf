package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
)

// Options are the settings of a [Sender].
type Options struct {
	// Endpoint is the collector's URL, to which /v1/traces is added.
	Endpoint string
	// Header and Value are a header of each request; no header without a value.
	Header, Value string
	// Ratio is the part of the traces that is kept, of those that begin here.
	Ratio float64
	// Queue bounds the spans that wait, Timeout one request.
	Queue   int
	Timeout time.Duration
	// Transport carries the requests.
	Transport http.RoundTripper
	// Closed is called when the last request is over; nil for nothing.
	Closed func()
	// Version is the host's, Instance its name among the hosts.
	Version, Instance string
	Logger            *slog.Logger
}

// Sender sends spans of what is committed. It implements [swarm.Observer].
type Sender struct {
	queue    *queue
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	ratio    sdktrace.Sampler
	closed   func()
}

// Open returns a sender, which works until [Sender.Close]. It calls no one before there is
// a span.
func Open(ctx context.Context, opt Options) (*Sender, error) {
	headers := map[string]string{}
	if opt.Value != "" {
		headers[cmp.Or(opt.Header, "Authorization")] = opt.Value
	}
	exporter, err := otlptracehttp.New(ctx,
		otlptracehttp.WithEndpointURL(strings.TrimRight(opt.Endpoint, "/")+"/v1/traces"),
		otlptracehttp.WithHeaders(headers),
		otlptracehttp.WithTimeout(opt.Timeout),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: time.Second, MaxInterval: 5 * time.Second, MaxElapsedTime: retryFor}),
		otlptracehttp.WithHTTPClient(&http.Client{Transport: opt.Transport, Timeout: opt.Timeout, CheckRedirect: refuseRedirect}),
	)
	if err != nil {
		return nil, fmt.Errorf("prepare the export of traces: %w", err)
	}
	described := describeHost(ctx, opt)
	s := &Sender{queue: startQueue(exporter, opt.Queue, opt.Logger), ratio: sdktrace.TraceIDRatioBased(opt.Ratio), closed: opt.Closed}
	s.provider = sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // it is decided before
		sdktrace.WithIDGenerator(givenIDs{}),
		sdktrace.WithResource(described),
		sdktrace.WithRawSpanLimits(spanLimits()),
		sdktrace.WithSpanProcessor(s.queue),
	)
	s.tracer = s.provider.Tracer("skep", trace.WithInstrumentationVersion(opt.Version), trace.WithSchemaURL(semconv.SchemaURL))
	return s, nil
}

// describeHost returns what is said of the host with its spans. The variables of the environment
// that name a service come last: they win. Malformed ones are left out, as
// https://opentelemetry.io/docs/specs/otel/resource/sdk/#specifying-resource-information-via-an-environment-variable
// has it.
func describeHost(ctx context.Context, opt Options) *resource.Resource {
	described, err := resource.New(ctx, resource.WithAttributes(
		semconv.ServiceName("skep"), semconv.ServiceVersion(opt.Version), semconv.ServiceInstanceID(opt.Instance),
	), resource.WithFromEnv())
	if err != nil {
		opt.Logger.Warn("OTEL_RESOURCE_ATTRIBUTES is not a list of KEY=VALUE, separated by commas; what is none of them is left out of traces", "err", fmt.Sprintf("%.500s", err.Error()))
	}
	return described
}

// retryFor is how long a batch is sent again that a collector cannot take.
const retryFor = 30 * time.Second

// closeGrace is how long the spans that wait at the host's end may take.
const closeGrace = 2 * time.Second

// refuseRedirect keeps spans from a place that the operator has not named.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

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
func (s *Sender) Register(to prometheus.Registerer) error {
	if s == nil {
		return nil
	}
	return errors.Join(to.Register(s.queue.sent), to.Register(s.queue.dropped))
}

// Close sends what waits, for a moment, and stops. Closing a nil sender does nothing.
func (s *Sender) Close() error {
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	if s.closed != nil {
		defer s.closed()
	}
	if err := s.provider.Shutdown(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("end the export of traces: %w", err)
	}
	return nil // what a dead collector has missed is counted and logged
}

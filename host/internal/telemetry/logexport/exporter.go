package logexport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"

	"skep/host/internal/telemetry/otlp"
)

// Bounds of the records that wait: how many there are, and how many attributes one has.
const (
	maxRecords    = 1024
	maxAttributes = 32
)

// Exporter sends the records of a log.
type Exporter struct {
	queue    *otlp.Queue[sdklog.Record]
	exporter *otlploghttp.Exporter
	provider *sdklog.LoggerProvider
	version  string
}

// Open returns an exporter, which works until [Exporter.Close]. It calls no one before there is a record.
func Open(ctx context.Context, to otlp.Collector) (*Exporter, error) {
	exporter, err := otlploghttp.New(ctx,
		otlploghttp.WithEndpointURL(to.URL("logs")),
		otlploghttp.WithHeaders(to.Headers()),
		otlploghttp.WithTimeout(to.Timeout),
		otlploghttp.WithTLSClientConfig(nil), // none of the environment
		otlploghttp.WithCompression(otlploghttp.GzipCompression),
		otlploghttp.WithRetry(otlploghttp.RetryConfig{Enabled: true, InitialInterval: otlp.RetryFirst, MaxInterval: otlp.RetryMost, MaxElapsedTime: otlp.RetryFor}),
		otlploghttp.WithHTTPClient(to.Client()),
	)
	if err != nil {
		return nil, fmt.Errorf("prepare the export of the log: %w", err)
	}
	held := otlp.QueueOptions{Name: "log records", Title: "Records of the log", Metric: "skep_log_records", Size: maxRecords}
	e := &Exporter{queue: otlp.StartQueue(held, exporter.Export, to.Logger), exporter: exporter, version: to.Version}
	e.provider = sdklog.NewLoggerProvider(
		sdklog.WithResource(to.Describe(ctx)),
		sdklog.WithAttributeCountLimit(maxAttributes),
		sdklog.WithProcessor(processor{e}),
	)
	return e, nil
}

// Tee returns a log whose records are sent, too. Its level is that of the log. Values with a method
// KeepInHost are sent only if withOutput is set.
func (e *Exporter) Tee(log *slog.Logger, withOutput bool) *slog.Logger {
	remote := otelslog.NewHandler("skep", otelslog.WithLoggerProvider(e.provider), otelslog.WithVersion(e.version))
	return slog.New(tee{log.Handler(), remote, withOutput})
}

// Register adds the counts of records to a registry. A nil exporter has none.
func (e *Exporter) Register(to prometheus.Registerer) (err error) {
	if e == nil {
		return nil
	}
	for _, one := range e.queue.Counts() {
		err = errors.Join(err, to.Register(one))
	}
	return err
}

// Close sends what waits, for a moment, and stops. Closing a nil exporter does nothing.
func (e *Exporter) Close() error {
	if e == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), otlp.CloseGrace)
	defer cancel()
	if err := e.provider.Shutdown(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("end the export of the log: %w", err)
	}
	return nil // what a dead collector has missed is counted and logged
}

// processor queues records.
type processor struct{ *Exporter }

var _ sdklog.Processor = processor{}

// Enabled implements [sdklog.Processor].
func (processor) Enabled(context.Context, sdklog.EnabledParameters) bool { return true }

// OnEmit queues a record, or drops it. It does not wait.
func (p processor) OnEmit(_ context.Context, r *sdklog.Record) error {
	p.queue.Add(r.Clone())
	return nil
}

// ForceFlush implements [sdklog.Processor]. Records go out by themselves.
func (processor) ForceFlush(context.Context) error { return nil }

// Shutdown sends the records that wait until ctx ends, and drops the others.
func (p processor) Shutdown(ctx context.Context) error {
	p.queue.Close(ctx)
	return p.exporter.Shutdown(ctx)
}

package config

import (
	"log/slog"
	"time"
)

// Telemetry is the [telemetry] table.
type Telemetry struct {
	LogLevel  string // "debug", "info", "warn" or "error"
	LogFormat string // "auto" is text on a terminal and JSON elsewhere
	// TenantLabels puts the names of tenants into labels of metrics.
	TenantLabels bool
	// Endpoint is the URL of a collector, empty for none. Header and HeaderValue are sent with
	// each request.
	Endpoint    string
	Header      string
	HeaderValue Secret
	// Logs sends the log to the collector.
	Logs bool
	// Sample is the part of the traces that is kept, from 0 to 1.
	Sample float64
	// SpanQueue bounds the spans that wait, ExportTimeout one request.
	SpanQueue     int
	ExportTimeout time.Duration
}

// Level is the least that is logged. The zero table's is info.
func (t Telemetry) Level() slog.Level {
	return map[string]slog.Level{"debug": slog.LevelDebug, "warn": slog.LevelWarn, "error": slog.LevelError}[t.LogLevel]
}

func (o *Telemetry) Settings() []Setting {
	return []Setting{
		choice(&o.LogLevel, "log_level", "info", []string{"debug", "info", "warn", "error"}, "The least that is logged."),
		choice(&o.LogFormat, "log_format", "auto", []string{"auto", "text", "json"}, "How it is logged; `auto` is text on a terminal and JSON elsewhere.").restarts(),
		boolean(&o.TenantLabels, "tenant_labels", false, "Metrics of turns, tasks, messages, quotas and of what agents report have the tenant as a label, up to 100 of them; the rest are `other`.").restarts(),
		field(&o.Endpoint, "endpoint", "string", (*table).url, "URL of an OpenTelemetry collector, as in `http://127.0.0.1:4318`: it is sent the log and traces of tasks, by OTLP over HTTP. `http` is for private addresses. Without it nothing is sent.").restarts(),
		text(&o.Header, "header", "The header that has `header_value`.").withDefaultText("Authorization").restarts(),
		headerSecret(&o.HeaderValue, "header_value", "What the collector is shown, as in `Bearer TOKEN`, by `env::` or `file::`.").restarts(),
		boolean(&o.Logs, "logs", true, "The collector is sent what the host logs, too.").restarts(),
		portion(&o.Sample, "sample", 1, "The part of the traces that is kept, from 0 to 1. A caller's `traceparent` decides for its own.").restarts(),
		count(&o.SpanQueue, "span_queue", 4096, 64, 1<<20, "Spans that wait for the collector. Those that find no place are dropped and counted.").restarts(),
		span(&o.ExportTimeout, "export_timeout", 10*time.Second, 100*time.Millisecond, time.Minute, "How long one request to the collector may take.").restarts(),
	}
}

func (d *decoder) telemetry(t *table) Telemetry {
	var o Telemetry
	t.read(o.Settings())
	t.refuseUnknown()
	if v, ok := t.value("header"); ok && !headerName.MatchString(v.text) {
		d.atValue(v.location, v.path+" must be the name of an HTTP header")
	}
	for _, key := range []string{"header", "header_value", "logs", "sample", "span_queue", "export_timeout"} {
		if t.has(key) && o.Endpoint == "" {
			d.atKey(t.child(key), t.path+"."+key+" is for what is sent to telemetry.endpoint alone; add it, or remove this line")
		}
	}
	return o
}

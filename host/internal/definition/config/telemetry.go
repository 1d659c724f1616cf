package config

import "log/slog"

// Telemetry is the [telemetry] table.
type Telemetry struct {
	LogLevel  string // "debug", "info", "warn" or "error"
	LogFormat string // "auto" is text on a terminal and JSON elsewhere
	// TenantLabels puts the names of tenants into labels of metrics.
	TenantLabels bool
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
	}
}

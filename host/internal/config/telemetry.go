package config

import "log/slog"

// Telemetry is the [telemetry] table.
type Telemetry struct {
	LogLevel  string // "debug", "info", "warn" or "error"
	LogFormat string // "auto" is text on a terminal and JSON elsewhere
}

// Level is the least that is logged. The zero table's is info.
func (t Telemetry) Level() slog.Level {
	return map[string]slog.Level{"debug": slog.LevelDebug, "warn": slog.LevelWarn, "error": slog.LevelError}[t.LogLevel]
}

func (d *decoder) telemetry(t *table) Telemetry {
	o := Telemetry{
		LogLevel:  t.oneOf("log_level", "info", "debug", "info", "warn", "error"),
		LogFormat: t.oneOf("log_format", "auto", "auto", "text", "json"),
	}
	t.done()
	return o
}

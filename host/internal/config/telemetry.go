package config

// Telemetry is the [telemetry] table.
type Telemetry struct {
	LogLevel  string // "debug", "info", "warn" or "error"
	LogFormat string // "auto" is text on a terminal and JSON elsewhere
}

func (d *decoder) telemetry(t *table) Telemetry {
	o := Telemetry{
		LogLevel:  t.oneOf("log_level", "info", "debug", "info", "warn", "error"),
		LogFormat: t.oneOf("log_format", "auto", "auto", "text", "json"),
	}
	t.done()
	return o
}

// Package otlp owns what all that a host sends to a collector of OpenTelemetry has in common: the
// collector and its requests, the queue before them, and what is said of the host. It must not know
// what is sent.
package otlp

// Package logexport owns the way of a host's log to a collector of OpenTelemetry: what a record becomes,
// and how many wait. It must not know what is logged, nor at which level.
package logexport

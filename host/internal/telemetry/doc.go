// Package telemetry owns the host's metrics: their registry, and how numbers that other
// packages keep are shown in it. It must not know what a number means to who keeps it.
package telemetry

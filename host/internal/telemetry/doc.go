// Package telemetry owns what the host shows its operators of the work that is done: the
// metrics with their registry, and lines of the log about turns and tasks. It must not
// know content, nor hold work up.
package telemetry

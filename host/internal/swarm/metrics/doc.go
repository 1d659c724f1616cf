// Package metrics owns the numbers that agents report to their operator: the series,
// their values, and the bounds for one agent and one tenant. It must not know when a
// report counts, nor how numbers are shown. Nothing in it outlives the process.
package metrics

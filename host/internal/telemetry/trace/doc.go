// Package trace owns what is told of tasks to a collector of OpenTelemetry: spans of tasks,
// turns, calls of models and actions, by the GenAI conventions, over OTLP with HTTP. It must not
// know content, tell of what is not committed, nor hold work up.
package trace

package abi

// MetricRequest is the request of op metric; its answer is empty.
type MetricRequest struct {
	// Name matches [a-z][a-z0-9_]{0,63}.
	Name string `json:"name"`
	// Value is added to a counter and replaces a gauge's. It is mandatory.
	Value *float64 `json:"value"`
	// Kind is empty for a counter.
	Kind MetricKind `json:"kind,omitempty"`
	// Labels are at most [MaxMetricLabels]; each set of values is a series of its
	// own.
	Labels map[string]string `json:"labels,omitempty"`
}

// MetricKind is what a metric's values mean.
type MetricKind string

// The kinds of metric.
const (
	// MetricCounter only grows: its values, which are not negative, are added up.
	MetricCounter MetricKind = "counter"
	// MetricGauge is what it was set to last.
	MetricGauge MetricKind = "gauge"
)

// Bounds of op metric.
const (
	MaxMetricName   = 64
	MaxMetricLabels = 8
	// MaxMetricLabel is of a label's name and of its value, in bytes each.
	MaxMetricLabel = 64
	// MaxMetrics is of one turn, in calls.
	MaxMetrics = 1000
)

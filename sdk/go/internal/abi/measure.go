package abi

// MetricRequest is the request of op metric.
type MetricRequest struct {
	Name   string            `json:"name"`
	Value  *float64          `json:"value"`
	Kind   MetricKind        `json:"kind,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// MetricKind is what a metric's values mean.
type MetricKind string

// The kinds of metric.
const (
	MetricCounter MetricKind = "counter"
	MetricGauge   MetricKind = "gauge"
)

// SpanRequest is the request of op span.
type SpanRequest struct {
	Name       string            `json:"name,omitempty"`
	ID         int64             `json:"id,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Error      string            `json:"error,omitempty"`
}

// SpanResponse is the answer of op span.
type SpanResponse struct {
	ID int64 `json:"id"`
}

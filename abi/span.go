package abi

// SpanRequest is the request of op span. It has either Name, and begins a span,
// or ID, and ends one.
type SpanRequest struct {
	// Name is one line of at most [MaxSpanName] bytes.
	Name string `json:"name,omitempty"`
	// ID is a span's that has not ended.
	ID int64 `json:"id,omitempty"`
	// Attributes are at most [MaxSpanAttributes] over both calls.
	Attributes map[string]string `json:"attributes,omitempty"`
	// Error is why the span's work has failed. It comes with ID.
	Error string `json:"error,omitempty"`
}

// SpanResponse is the answer of op span: the span that began, or has ended.
type SpanResponse struct {
	ID int64 `json:"id"`
}

// Bounds of op span, in bytes and counts.
const (
	// MaxSpans is of one turn, its actions included.
	MaxSpans = 100
	// MaxSpanBytes is of all texts of a turn's spans.
	MaxSpanBytes      = 64 << 10
	MaxSpanName       = 128
	MaxSpanAttributes = 16
	// MaxSpanKey and MaxSpanValue are of one attribute.
	MaxSpanKey   = 64
	MaxSpanValue = 256
	MaxSpanError = 512
)

package skep

import (
	"strings"

	"skep/sdk/go/internal/abi"
)

// Labels tell the series of a metric apart. Names match [a-z][a-z0-9_]{0,63};
// values have at most 64 bytes and should be few: each set of them is a series,
// and an agent may have 100.
type Labels map[string]string

// Count adds to a number that the operator's monitoring reads, by 0 or more. It
// counts when the turn ends, well or not, and once. Labels may be nil.
func (t *Turn) Count(name string, by float64, labels Labels) error {
	return t.Call(OpMetric, abi.MetricRequest{Name: name, Value: &by, Labels: labels}, nil)
}

// Gauge sets such a number instead.
func (t *Turn) Gauge(name string, value float64, labels Labels) error {
	return t.Call(OpMetric, abi.MetricRequest{Name: name, Value: &value, Kind: abi.MetricGauge, Labels: labels}, nil)
}

// Span is a part of the turn that the operator sees with the time it took. The
// zero value is none: its End does nothing.
type Span struct {
	turn *Turn
	id   int64
}

// Span begins one, within the one that began last and has not ended. Attributes,
// at most 16, may be nil. A turn may have 100; one more is [Limit].
func (t *Turn) Span(name string, attributes map[string]string) (Span, error) {
	var rsp abi.SpanResponse
	if err := t.Call(OpSpan, abi.SpanRequest{Name: name, Attributes: attributes}, &rsp); err != nil {
		return Span{}, err
	}
	return Span{t, rsp.ID}, nil
}

// maxSpanError is how much of an error is kept.
const maxSpanError = 512

// End ends the span with more attributes, which may be nil, and with what has gone
// wrong, if something has. A span without End ends with the turn.
func (s Span) End(attributes map[string]string, failure error) error {
	if s.turn == nil {
		return nil
	}
	req := abi.SpanRequest{ID: s.id, Attributes: attributes}
	if failure != nil {
		req.Error = oneLine(failure.Error(), maxSpanError)
	}
	return s.turn.Call(OpSpan, req, nil)
}

// oneLine makes a text of at most so many bytes, without what ends a line.
func oneLine(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}

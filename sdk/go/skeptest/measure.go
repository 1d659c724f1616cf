package skeptest

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	skep "skep/sdk/go"
	"skep/sdk/go/internal/abi"
)

// Metric is one number that a turn reported.
type Metric struct {
	Name string
	// Gauge: Value replaces the one before; else it is added.
	Gauge  bool
	Value  float64
	Labels skep.Labels
}

// Span is a part of a turn that the agent has marked.
type Span struct {
	Name       string
	Attributes map[string]string
	Error      string
	// Ended: the agent has ended it, not the turn.
	Ended bool
}

// Bounds of metrics and spans, as a host has them.
const (
	maxMetrics    = 1000
	maxLabels     = 8
	maxLabel      = 64
	maxSpans      = 100
	maxAttributes = 16
	maxSpanName   = 128
	maxSpanKey    = 64
	maxSpanValue  = 256
	maxSpanError  = 512
)

var metricName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

func (h *host) metric(req json.RawMessage) (any, error) {
	var ask abi.MetricRequest
	if err := strict(req, &ask); err != nil {
		return nil, err
	}
	gauge := ask.Kind == abi.MetricGauge
	switch {
	case !metricName.MatchString(ask.Name):
		return nil, because(skep.Invalid, "name", "the name %.70q does not match %s", ask.Name, metricName)
	case ask.Value == nil:
		return nil, because(skep.Invalid, "value", "metric: value is missing; it must be a number")
	case gauge && strings.HasSuffix(ask.Name, "_total"):
		return nil, because(skep.Invalid, "name", "the name %q ends as those of counters do, so it is none for a gauge", ask.Name)
	case !gauge && ask.Kind != "" && ask.Kind != abi.MetricCounter:
		return nil, because(skep.Invalid, "kind", "the kind must be counter or gauge, not %.40q", ask.Kind)
	case !gauge && *ask.Value < 0:
		return nil, because(skep.Invalid, "value", "a counter only grows: the value must be 0 or more, not %v", *ask.Value)
	case len(h.metrics) >= maxMetrics:
		return nil, because(skep.Limit, "calls", "a turn may report %d numbers", maxMetrics)
	}
	if err := checkLabels(ask.Labels); err != nil {
		return nil, err
	}
	h.metrics = append(h.metrics, Metric{ask.Name, gauge, *ask.Value, ask.Labels})
	return struct{}{}, nil
}

func checkLabels(labels skep.Labels) error {
	if len(labels) > maxLabels {
		return because(skep.Limit, "labels", "%d labels, at most %d", len(labels), maxLabels)
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		switch {
		case !metricName.MatchString(name):
			return because(skep.Invalid, "label", "the name %.70q of a label does not match %s", name, metricName)
		case slices.Contains([]string{"tenant", "swarm", "agent", "action", "le", "quantile"}, name):
			return because(skep.Invalid, "label", "the label %s is not for agents; choose another name", name)
		}
		if err := oneLine("label", "value of the label "+name, labels[name], maxLabel); err != nil {
			return err
		}
	}
	return nil
}

func (h *host) span(req json.RawMessage) (any, error) {
	var ask abi.SpanRequest
	if err := strict(req, &ask); err != nil {
		return nil, err
	}
	if err := checkSpan(ask); err != nil {
		return nil, err
	}
	if ask.ID == 0 {
		if len(h.spans) >= maxSpans {
			return nil, because(skep.Limit, "spans", "a turn may have %d spans", maxSpans)
		}
		h.spans = append(h.spans, Span{Name: ask.Name, Attributes: ask.Attributes})
		return abi.SpanResponse{ID: int64(len(h.spans))}, nil
	}
	if ask.ID > int64(len(h.spans)) || h.spans[ask.ID-1].Ended {
		return nil, because(skep.NotFound, "id", "there is no open span %d", ask.ID)
	}
	s := &h.spans[ask.ID-1]
	all := maps.Clone(s.Attributes)
	if all == nil {
		all = map[string]string{}
	}
	if maps.Copy(all, ask.Attributes); len(all) > maxAttributes {
		return nil, because(skep.Limit, "attributes", "a span of %d attributes, at most %d", len(all), maxAttributes)
	}
	s.Attributes, s.Error, s.Ended = all, ask.Error, true
	return abi.SpanResponse{ID: ask.ID}, nil
}

func checkSpan(ask abi.SpanRequest) error {
	switch {
	case (ask.Name == "") == (ask.ID == 0):
		return because(skep.Invalid, "members", "the request must have either name, and begins a span, or id, and ends one")
	case ask.ID < 0:
		return because(skep.Invalid, "id", "id must be what span has answered, not %d", ask.ID)
	case ask.ID == 0 && ask.Error != "":
		return because(skep.Invalid, "error", "error comes with id, when a span ends")
	case len(ask.Attributes) > maxAttributes:
		return because(skep.Limit, "attributes", "a span of %d attributes, at most %d", len(ask.Attributes), maxAttributes)
	}
	for _, name := range slices.Sorted(maps.Keys(ask.Attributes)) {
		if name == "" {
			return because(skep.Invalid, "attributes", "the name of an attribute must not be empty")
		}
		if err := oneLine("text", "attribute's name", name, maxSpanKey); err != nil {
			return err
		}
		if err := oneLine("text", "attribute's value", ask.Attributes[name], maxSpanValue); err != nil {
			return err
		}
	}
	if err := oneLine("text", "name", ask.Name, maxSpanName); err != nil {
		return err
	}
	return oneLine("text", "error", ask.Error, maxSpanError)
}

// oneLine wants a text that is not too long and has no control characters.
func oneLine(reason, what, text string, most int) error {
	switch {
	case len(text) > most:
		return because(skep.Limit, reason, "the %s has %d bytes, at most %d", what, len(text), most)
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 }):
		return because(skep.Invalid, reason, "the %s holds a control character", what)
	}
	return nil
}

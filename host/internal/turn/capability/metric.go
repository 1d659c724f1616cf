package capability

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"skep/abi"
)

var metricName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// reservedLabels are labels that the host sets, or that have a meaning in Prometheus.
func reservedLabels() []string {
	return []string{"tenant", "swarm", "agent", "action", "le", "quantile"}
}

// metric reports a number to the operator.
func (o *ops) metric(_ context.Context, req []byte) ([]byte, *abi.Error) {
	var ask abi.MetricRequest
	if fault := decode(abi.OpMetric, req, &ask); fault != nil {
		return nil, fault
	}
	fault := checkMetric(ask)
	if fault == nil {
		fault = checkLabels(ask.Labels)
	}
	if fault == nil {
		fault = o.turn.ReportMetric(ask)
	}
	if fault != nil {
		return nil, fault
	}
	return []byte("{}"), nil
}

func checkMetric(ask abi.MetricRequest) *abi.Error {
	switch {
	case !metricName.MatchString(ask.Name):
		return abi.Errorf(abi.CodeInvalid, abi.OpMetric, "name", "the name %.70q does not match %s", ask.Name, metricName)
	case ask.Value == nil:
		return abi.Errorf(abi.CodeInvalid, abi.OpMetric, "value", "metric: value is missing; it must be a number")
	case ask.Kind == abi.MetricGauge && strings.HasSuffix(ask.Name, "_total"):
		return abi.Errorf(abi.CodeInvalid, abi.OpMetric, "name", "the name %q ends as those of counters do, so it is none for a gauge", ask.Name)
	case ask.Kind == abi.MetricGauge:
		return nil
	case ask.Kind != "" && ask.Kind != abi.MetricCounter:
		return abi.Errorf(abi.CodeInvalid, abi.OpMetric, "kind", "the kind must be counter or gauge, not %.40q", ask.Kind)
	case *ask.Value < 0:
		return abi.Errorf(abi.CodeInvalid, abi.OpMetric, "value", "a counter only grows: the value must be 0 or more, not %v", *ask.Value)
	}
	return nil
}

func checkLabels(labels map[string]string) *abi.Error {
	if len(labels) > abi.MaxMetricLabels {
		return abi.Errorf(abi.CodeLimit, abi.OpMetric, "labels", "%d labels, at most %d", len(labels), abi.MaxMetricLabels)
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		value := labels[name]
		switch {
		case !metricName.MatchString(name):
			return abi.Errorf(abi.CodeInvalid, abi.OpMetric, "label", "the name %.70q of a label does not match %s", name, metricName)
		case slices.Contains(reservedLabels(), name):
			return abi.Errorf(abi.CodeInvalid, abi.OpMetric, "label", "the label %s is not for agents; choose another name", name)
		case len(value) > abi.MaxMetricLabel:
			return abi.Errorf(abi.CodeLimit, abi.OpMetric, "label", "the label %s has a value of %d bytes, at most %d", name, len(value), abi.MaxMetricLabel)
		case hasControlChars(value):
			return abi.Errorf(abi.CodeInvalid, abi.OpMetric, "label", "the value of the label %s holds a control character", name)
		}
	}
	return nil
}

// hasControlChars reports whether a text contains control characters or line separators.
func hasControlChars(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp)
	})
}

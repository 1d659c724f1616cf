package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Family is a metric whose samples are read when the metrics are asked for.
type Family struct {
	Name, Help string
	Kind       prometheus.ValueType
	// Labels are the names of the labels of every sample.
	Labels  []string
	Samples []Sample
}

// Sample is one value of a family, with the values of its labels.
type Sample struct {
	Labels []string
	Value  float64
}

// Counter is a number that only grows.
func Counter(name, help string, value int64) Family {
	return Family{Name: name, Help: help, Kind: prometheus.CounterValue, Samples: []Sample{{Value: float64(value)}}}
}

// Gauge is a number that rises and falls.
func Gauge(name, help string, value float64) Family {
	return Family{Name: name, Help: help, Kind: prometheus.GaugeValue, Samples: []Sample{{Value: value}}}
}

// Collector returns a collector of the families that read returns, which may be others
// each time. read is called by several goroutines at once.
func Collector(read func() []Family) prometheus.Collector { return collector(read) }

type collector func() []Family

// Describe sends nothing: the families are known when they are read.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (c collector) Collect(ch chan<- prometheus.Metric) {
	for _, f := range c() {
		desc := prometheus.NewDesc(f.Name, f.Help, f.Labels, nil)
		for _, s := range f.Samples {
			m, err := prometheus.NewConstMetric(desc, f.Kind, s.Value, s.Labels...)
			if err != nil {
				m = prometheus.NewInvalidMetric(desc, err)
			}
			ch <- m
		}
	}
}

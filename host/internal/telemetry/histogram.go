package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Durations describes a histogram of seconds. Its native buckets are 10 % apart and at
// most 160; readers of the text format get the classic ones
// (https://prometheus.io/docs/specs/native_histograms/).
func Durations(name, help string) prometheus.HistogramOpts {
	return histogram(name, help, []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 60, 600})
}

// Sizes describes a histogram of bytes, with native buckets as those of [Durations].
func Sizes(name, help string) prometheus.HistogramOpts {
	return histogram(name, help, prometheus.ExponentialBuckets(1<<20, 2, 10))
}

func histogram(name, help string, classic []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help,
		Buckets:                         classic,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  160,
		NativeHistogramMinResetDuration: time.Hour,
	}
}

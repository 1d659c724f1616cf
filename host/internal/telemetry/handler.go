package telemetry

import (
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxReaders bounds the readers of the metrics at once; one more gets 503.
const maxReaders = 8

// Handler serves the metrics of a registry in the format that the reader asks for
// (https://prometheus.io/docs/instrumenting/exposition_formats/). A metric that cannot be
// shown is logged, and the others are shown.
func Handler(metrics prometheus.Gatherer, log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(metrics, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxReaders,
		EnableOpenMetrics:   true,
	})
}

package otlp

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
)

// Times of requests to a collector: how long a batch is sent again that it cannot take, and how long what
// waits at the host's end may take.
const (
	RetryFirst = time.Second
	RetryMost  = 5 * time.Second
	RetryFor   = 30 * time.Second
	CloseGrace = 2 * time.Second
)

// Collector is a collector, and the host that sends to it.
type Collector struct {
	// Endpoint is the collector's URL.
	Endpoint string
	// Header and Value are a header of each request; no header without a value.
	Header, Value string
	// Timeout bounds one request.
	Timeout time.Duration
	// Transport carries the requests.
	Transport http.RoundTripper
	// Version is the host's, Instance its name among the hosts.
	Version, Instance string
	// Logger has what goes wrong with it. What it logs is not sent.
	Logger *slog.Logger
}

// URL returns the address for a kind of what is sent, as "traces".
func (c Collector) URL(kind string) string { return strings.TrimRight(c.Endpoint, "/") + "/v1/" + kind }

// Headers are of each request.
func (c Collector) Headers() map[string]string {
	headers := map[string]string{}
	if c.Value != "" {
		headers[cmp.Or(c.Header, "Authorization")] = c.Value
	}
	return headers
}

// Client carries requests to the collector, and not to a place that the operator has not named.
func (c Collector) Client() *http.Client {
	return &http.Client{
		Transport: c.Transport, Timeout: c.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Describe returns what is said of the host. The variables of the environment that name a service come
// last: they win. Malformed ones are left out, as
// https://opentelemetry.io/docs/specs/otel/resource/sdk/#specifying-resource-information-via-an-environment-variable
// has it, with a warning.
func (c Collector) Describe(ctx context.Context) *resource.Resource {
	described, err := resource.New(ctx, resource.WithAttributes(
		semconv.ServiceName("skep"), semconv.ServiceVersion(c.Version), semconv.ServiceInstanceID(c.Instance),
	), resource.WithFromEnv())
	if err != nil {
		c.Logger.Warn("OTEL_RESOURCE_ATTRIBUTES is not a list of KEY=VALUE, separated by commas; what is none of them is left out of what the collector gets", "err", fmt.Sprintf("%.500s", err.Error()))
	}
	return described
}

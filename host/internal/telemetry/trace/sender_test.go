package trace_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"skep/host/internal/swarm"
	"skep/host/internal/telemetry/otlp"
	"skep/host/internal/telemetry/trace"
)

// counts returns the counts of spans by reason; sent is "".
func counts(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			reason := ""
			for _, l := range m.GetLabel() {
				reason = l.GetValue()
			}
			got[reason] = m.GetCounter().GetValue()
		}
	}
	return got
}

func open(t *testing.T, endpoint string) (*trace.Sender, *prometheus.Registry) {
	t.Helper()
	s, err := trace.Open(t.Context(), trace.Options{Ratio: 1, Queue: 100, Collector: otlp.Collector{
		Endpoint: endpoint, Timeout: 100 * time.Millisecond, Transport: http.DefaultTransport, Logger: slog.New(slog.DiscardHandler),
	}})
	if err != nil {
		t.Fatal(err)
	}
	r := prometheus.NewRegistry()
	if err := s.Register(r); err != nil {
		t.Fatal(err)
	}
	return s, r
}

const spans = 2000

func commit(s *trace.Sender) {
	parent := swarm.ParseTrace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "")
	for i := range spans {
		s.Committed(swarm.Change{Task: swarm.TaskKey{Task: fmt.Sprint(i)}, Turn: &swarm.CommittedTurn{Agent: "a", Parent: parent, Trace: parent, Start: time.Now()}})
	}
}

// A collector that is dead or does not answer holds no commit up and takes no memory beyond the
// queue; every span that it misses is counted, and the end does not wait for it.
func TestDeadCollector(t *testing.T) {
	t.Parallel()
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server sees its client leave once the body is read
		<-r.Context().Done()
	}))
	t.Cleanup(slow.Close) // a deferred call would come before the subtests
	dead := httptest.NewServer(nil)
	dead.Close()
	// What waits at a slow one is one batch and a queue; a dead one refuses batches at once.
	for name, c := range map[string]struct {
		url         string
		leastQueued float64
	}{"slow": {slow.URL, spans - 512 - 100}, "dead": {dead.URL, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, metrics := open(t, c.url)
			commit(s)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			got := counts(t, metrics)
			if got[""] != 0 || got["queue"]+got["export"] != spans || got["queue"] < c.leastQueued {
				t.Errorf("%v", got)
			}
		})
	}
}

// A collector that has gone elsewhere is not followed there.
func TestCollectorRedirects(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("spans went elsewhere") }))
	defer elsewhere.Close()
	from := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer from.Close()
	s, metrics := open(t, from.URL)
	commit(s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got := counts(t, metrics); got[""] != 0 {
		t.Errorf("%v", got)
	}
}

// The part of the traces that is kept is about the ratio, and the same for each host.
func TestSample(t *testing.T) {
	t.Parallel()
	s, err := trace.Open(t.Context(), trace.Options{Ratio: 0.25, Queue: 64, Collector: otlp.Collector{Endpoint: "http://127.0.0.1:1", Timeout: time.Second, Transport: http.DefaultTransport}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	kept := 0
	for i := range 256 {
		if s.Sample([16]byte{8: byte(i)}) {
			kept++
		}
	}
	if kept != 64 {
		t.Errorf("%d of 256 are kept", kept)
	}
}

// A malformed variable of the environment does not keep the host from its start: it is left out, and
// the log has why. Those that can be read count.
func TestMalformedEnvironment(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "team=bees,nonsense")
	t.Setenv("OTEL_SERVICE_NAME", "hive")
	bodies := make(chan string, 8)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		body, _ := io.ReadAll(unpacked)
		bodies <- string(body)
	}))
	t.Cleanup(collector.Close)
	var log bytes.Buffer
	s, err := trace.Open(t.Context(), trace.Options{Ratio: 1, Queue: 10, Collector: otlp.Collector{
		Endpoint: collector.URL, Timeout: time.Minute, Transport: http.DefaultTransport, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}})
	if err != nil {
		t.Fatal(err)
	}
	parent := swarm.ParseTrace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "")
	s.Committed(swarm.Change{Turn: &swarm.CommittedTurn{Agent: "a", Parent: parent, Trace: parent, Start: time.Now()}})
	var body string
	select {
	case body = <-bodies:
	case <-time.After(2 * time.Minute):
		t.Error("the collector was sent nothing")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"hive", "team", "bees"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in what the collector was sent: %q", want, body)
		}
	}
	for _, want := range []string{"OTEL_RESOURCE_ATTRIBUTES", "nonsense"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in the log: %s", want, log.String())
		}
	}
}

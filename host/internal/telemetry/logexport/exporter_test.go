package logexport_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"skep/host/internal/definition/config"
	"skep/host/internal/hosttest"
	"skep/host/internal/telemetry/logexport"
	"skep/host/internal/telemetry/otlp"
	"skep/host/internal/turn"
)

func open(t *testing.T, endpoint string, local slog.Handler, withOutput bool) (*logexport.Exporter, *slog.Logger) {
	t.Helper()
	e, err := logexport.Open(t.Context(), otlp.Collector{
		Endpoint: endpoint, Timeout: time.Minute, Transport: http.DefaultTransport, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return e, e.Tee(slog.New(local), withOutput)
}

// hidden has a secret in a field that JSON leaves out, and one in a field that hides itself.
type hidden struct {
	inner  string
	Secret config.Secret
	Name   string
}

// A collector gets the records that the log has, with the same values: what types hide from the log is
// hidden from the collector, and no text is longer than the bound or keeps a batch from being sent.
func TestRecords(t *testing.T) {
	t.Parallel()
	collector := hosttest.StartCollector(t)
	var local bytes.Buffer
	var level slog.LevelVar
	e, log := open(t, collector.URL, slog.NewJSONHandler(&local, &slog.HandlerOptions{Level: &level}), false)
	const planted = "planted-secret"
	secret := config.Secret(planted)
	log.Debug("below the level")
	log.With("of", secret).WithGroup("g").Warn("hello", "n", 7, "err", errors.New("no way"), "took", time.Second, "secret", secret, "all", []config.Secret{secret},
		"map", map[string]config.Secret{"key": secret}, "type", hidden{planted, secret, "ann"}, "at", &hidden{planted, secret, "bob"}, "bad", "\xffutf8", "long", strings.Repeat("x", 1<<20))
	level.Set(slog.LevelDebug)
	log.Debug("above the level")
	records := collector.WaitLogs(t, 2)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if len(records) != 2 || records[0].Body != "hello" || records[0].Severity != "WARN" || records[1].Body != "above the level" {
		t.Fatalf("%+v", records)
	}
	for name, want := range map[string]string{
		"of": "[secret]", "g.n": "7", "g.err": "no way", "g.took": "1000000000", "g.secret": "[secret]", "g.all": `["[secret]"]`, "g.map": `{"key":"[secret]"}`,
		"g.type": `{"Secret":"[secret]","Name":"ann"}`, "g.at": `{"Secret":"[secret]","Name":"bob"}`, "g.bad": "\uFFFDutf8", "g.long": strings.Repeat("x", 2048),
	} {
		if got := records[0].Attributes[name]; got != want {
			t.Errorf("%s is %.100q, want %.100q", name, got, want)
		}
	}
	if raw, _ := collector.Received(); bytes.Contains(raw, []byte(planted)) || strings.Contains(local.String(), planted) {
		t.Error("a secret has left")
	}
	log.Info("after the end") // goes nowhere
}

// What a program has written goes to the collector only where the operator may read it.
func TestOutputOfPrograms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		withOutput bool
		want       string
	}{"held": {false, "[not sent]"}, "sent": {true, "planted"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			collector := hosttest.StartCollector(t)
			var local bytes.Buffer
			e, log := open(t, collector.URL, slog.NewTextHandler(&local, nil), c.withOutput)
			log.With("of", turn.Output("planted")).Info("written", "line", turn.Output("planted"), slog.Group("g", "in", turn.Output("planted")))
			records := collector.WaitLogs(t, 1)
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			for _, key := range []string{"of", "line", "g.in"} {
				if got := records[0].Attributes[key]; got != c.want || !strings.Contains(local.String(), key+"=planted") {
					t.Errorf("%s is %q, want %q; the log has %s", key, got, c.want, &local)
				}
			}
			if raw, _ := collector.Received(); bytes.Contains(raw, []byte("planted")) != c.withOutput {
				t.Errorf("the collector has %s", raw)
			}
		})
	}
}

// unlucky panics when it is encoded.
type unlucky struct{}

func (unlucky) MarshalJSON() ([]byte, error) { panic("no luck") }

// nilError panics where it is nil.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// resolved panics when its value is asked for.
type resolved struct{}

func (resolved) LogValue() slog.Value { panic("no value") }

// A value that panics when it is encoded is written as such in both logs, as [slog.JSONHandler] does.
func TestValueThatPanics(t *testing.T) {
	t.Parallel()
	collector := hosttest.StartCollector(t)
	var local bytes.Buffer
	e, log := open(t, collector.URL, slog.NewJSONHandler(&local, nil), false)
	log.With("of", (*nilError)(nil)).Warn("it fails", "err", (*nilError)(nil), "all", unlucky{}, "value", resolved{})
	records := collector.WaitLogs(t, 1)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"of": "<nil>", "err": "<nil>", "all": "!PANIC: no luck"} {
		if got := records[0].Attributes[name]; got != want || !strings.Contains(local.String(), want) {
			t.Errorf("%s is %q, want %q; the log has %s", name, got, want, &local)
		}
	}
	if got := records[0].Attributes["value"]; !strings.Contains(got, "LogValue panicked") {
		t.Errorf("value is %q", got)
	}
}

// A collector that is dead or does not answer holds no line of the log up, and no more than the queue
// waits in memory: what it misses is counted, and the end does not wait for it.
func TestDeadCollector(t *testing.T) {
	t.Parallel()
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server sees its client leave once the body is read
		<-r.Context().Done()
	}))
	t.Cleanup(slow.Close)
	dead := httptest.NewServer(nil)
	dead.Close()
	for name, url := range map[string]string{"slow": slow.URL, "dead": dead.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, log := open(t, url, slog.DiscardHandler, false)
			log = slog.New(enabled{log.Handler()})
			const lines, least = 4000, 4000 - 512 - 1024
			for range lines {
				log.Info("hello")
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			r := prometheus.NewRegistry()
			if err := e.Register(r); err != nil {
				t.Fatal(err)
			}
			got := counts(t, r)
			if got["sent"] != 0 || got["queue"]+got["export"] != lines || name == "slow" && got["queue"] < least {
				t.Errorf("%v", got)
			}
		})
	}
}

// enabled is a log of all levels.
type enabled struct{ slog.Handler }

func (enabled) Enabled(context.Context, slog.Level) bool { return true }

// counts returns the counts of records by reason.
func counts(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			reason := "sent"
			for _, l := range m.GetLabel() {
				reason = l.GetValue()
			}
			got[reason] = m.GetCounter().GetValue()
		}
	}
	return got
}

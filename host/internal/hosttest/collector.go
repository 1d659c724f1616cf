package hosttest

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	collogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlplogs "go.opentelemetry.io/proto/otlp/logs/v1"
	otlptrace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector is a collector of OpenTelemetry on loopback, which decodes what it is sent with the
// messages of the protocol's own project.
type Collector struct {
	URL string

	mu       sync.Mutex
	spans    []Span
	logs     []LogRecord
	raw      []byte
	headers  []http.Header
	received chan struct{} // closed and replaced with each request
}

// Span is a span as it came, with its ids in hexadecimal.
type Span struct {
	Name, Trace, ID, Parent string
	Failed                  bool
	Start, End              uint64
	Attributes              map[string]string
}

// LogRecord is a record of a log as it came. The attributes of groups have the names of these before theirs.
type LogRecord struct {
	Body, Severity string
	Attributes     map[string]string
}

// StartCollector starts a collector, which the end of the test stops.
func StartCollector(t *testing.T) *Collector {
	t.Helper()
	c := &Collector{received: make(chan struct{})}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := c.take(r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}))
	t.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

func (c *Collector) take(r *http.Request) error {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			return err
		}
		body = z
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	spans, logs, err := decode(r.URL.Path, raw)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw, c.headers = append(c.raw, raw...), append(c.headers, r.Header)
	c.spans, c.logs = append(c.spans, spans...), append(c.logs, logs...)
	close(c.received)
	c.received = make(chan struct{})
	return nil
}

// decode reads what a host has sent to a path.
func decode(path string, raw []byte) (spans []Span, logs []LogRecord, err error) {
	if path == "/v1/logs" {
		var in collogs.ExportLogsServiceRequest
		err = proto.Unmarshal(raw, &in)
		for _, resource := range in.GetResourceLogs() {
			for _, scope := range resource.GetScopeLogs() {
				for _, r := range scope.GetLogRecords() {
					logs = append(logs, readLogRecord(r))
				}
			}
		}
		return nil, logs, err
	}
	var in coltrace.ExportTraceServiceRequest
	err = proto.Unmarshal(raw, &in)
	for _, resource := range in.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				spans = append(spans, readSpan(s))
			}
		}
	}
	return spans, nil, err
}

func readLogRecord(r *otlplogs.LogRecord) LogRecord {
	out := LogRecord{Body: r.GetBody().GetStringValue(), Severity: r.GetSeverityText(), Attributes: map[string]string{}}
	out.add("", r.GetAttributes())
	return out
}

func (r LogRecord) add(group string, list []*common.KeyValue) {
	for _, a := range list {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_KvlistValue:
			r.add(group+a.GetKey()+".", v.KvlistValue.GetValues())
		case *common.AnyValue_StringValue:
			r.Attributes[group+a.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			r.Attributes[group+a.GetKey()] = strconv.FormatInt(v.IntValue, 10)
		default:
			r.Attributes[group+a.GetKey()] = a.GetValue().String()
		}
	}
}

func readSpan(s *otlptrace.Span) Span {
	out := Span{
		Name: s.GetName(), Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
		Failed: s.GetStatus().GetCode() == otlptrace.Status_STATUS_CODE_ERROR, Start: s.GetStartTimeUnixNano(), End: s.GetEndTimeUnixNano(),
		Attributes: map[string]string{},
	}
	for _, a := range s.GetAttributes() {
		text := a.GetValue().GetStringValue()
		if text == "" {
			text = strconv.FormatInt(a.GetValue().GetIntValue(), 10)
		}
		out.Attributes[a.GetKey()] = text
	}
	return out
}

// Wait waits until so many spans of a name have come, and returns all that have.
func (c *Collector) Wait(t *testing.T, name string, n int) []Span {
	t.Helper()
	for {
		c.mu.Lock()
		spans, received := c.spans[:len(c.spans):len(c.spans)], c.received
		c.mu.Unlock()
		if len(Named(spans, name)) >= n {
			return spans
		}
		select {
		case <-received:
		case <-t.Context().Done():
			t.Fatalf("the collector has %v", spans)
		}
	}
}

// WaitLogs waits until so many records of logs have come, and returns all that have.
func (c *Collector) WaitLogs(t *testing.T, n int) []LogRecord {
	t.Helper()
	for {
		c.mu.Lock()
		logs, received := c.logs[:len(c.logs):len(c.logs)], c.received
		c.mu.Unlock()
		if len(logs) >= n {
			return logs
		}
		select {
		case <-received:
		case <-t.Context().Done():
			t.Fatalf("the collector has %v", logs)
		}
	}
}

// Logs returns the records of logs that have come.
func (c *Collector) Logs() []LogRecord {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.logs[:len(c.logs):len(c.logs)]
}

// Received returns all bytes that have come, and the header of each request.
func (c *Collector) Received() ([]byte, []http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.raw, c.headers
}

// Named returns the spans of a name.
func Named(spans []Span, name string) (list []Span) {
	for _, s := range spans {
		if s.Name == name {
			list = append(list, s)
		}
	}
	return list
}

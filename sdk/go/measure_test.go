package skep_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

// teaAddress is what the address of "tea\n" is.
const teaAddress = "b49c876df8b640bda8d61932383cbb787236104f12ebfaf1007ea6dcc11d64aa"

func TestBlobsMetricsAndSpansSayWhatTheContractWants(t *testing.T) {
	t.Parallel()
	w := &skeptest.World{}
	out := turnIn(t, w, func(turn *skep.Turn) error {
		span, begun := turn.Span("look up", map[string]string{"city": "Oslo"})
		_, within := turn.Span("within", nil)
		_, put := turn.BlobPut([]byte("tea\n"))
		_, empty := turn.BlobPut(nil)
		got, read := turn.BlobGet(teaAddress)
		if string(got) != "tea\n" {
			t.Errorf("read %q", got)
		}
		_, none := turn.BlobGet(strings.Repeat("0", 64))
		return errors.Join(begun, within, put, empty, read, isNot(none, skep.NotFound),
			turn.Count("orders", 1, skep.Labels{"item": "tea"}), turn.Gauge("queue_length", 7, nil), turn.Count("orders", 0, nil),
			span.End(map[string]string{"hits": "3"}, errors.New("empty\nindex")), isNot(span.End(nil, nil), skep.NotFound), skep.Span{}.End(nil, nil))
	})
	want := []string{
		`span {"name":"look up","attributes":{"city":"Oslo"}}`,
		`span {"name":"within"}`,
		`blob.put {"data":"dGVhCg=="}`,
		`blob.put {"data":""}`,
		`blob.get {"sha256":"` + teaAddress + `"}`,
		`blob.get {"sha256":"` + strings.Repeat("0", 64) + `"}`,
		`metric {"name":"orders","value":1,"labels":{"item":"tea"}}`,
		`metric {"name":"queue_length","value":7,"kind":"gauge"}`,
		`metric {"name":"orders","value":0}`,
		`span {"id":1,"attributes":{"hits":"3"},"error":"empty index"}`,
		`span {"id":1}`,
	}
	if got := requests(out); !slices.Equal(got, want) {
		t.Errorf("called\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	metrics := []skeptest.Metric{{Name: "orders", Value: 1, Labels: skep.Labels{"item": "tea"}}, {Name: "queue_length", Gauge: true, Value: 7}, {Name: "orders"}}
	spans := []skeptest.Span{
		{Name: "look up", Attributes: map[string]string{"city": "Oslo", "hits": "3"}, Error: "empty index", Ended: true}, {Name: "within"},
	}
	if !reflect.DeepEqual(out.Metrics, metrics) || !reflect.DeepEqual(out.Spans, spans) {
		t.Errorf("metrics %+v, spans %+v", out.Metrics, out.Spans)
	}
}

// What a turn puts is there for the next if it ended well.
func TestWorldKeepsBlobs(t *testing.T) {
	t.Parallel()
	w := &skeptest.World{}
	before := w.PutBlob([]byte("before"))
	var kept, lost string
	out := skeptest.Run(turnFunc(func(turn *skep.Turn) error {
		lost, _ = turn.BlobPut([]byte("lost"))
		_ = turn.Count("tries", 1, nil)
		return errors.New("no")
	}), skeptest.Input{World: w})
	if _, ok := w.Blob(lost); ok || out.Err == nil || len(out.Metrics) != 1 {
		t.Errorf("a turn that failed has left its blob, or its numbers are gone: %+v", out)
	}
	turnIn(t, w, func(turn *skep.Turn) (err error) {
		kept, err = turn.BlobPut([]byte("kept"))
		return err
	})
	turnIn(t, w, func(turn *skep.Turn) error {
		for _, id := range []string{before, kept} {
			if _, err := turn.BlobGet(id); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
}

// The pretended host refuses what a real one does.
func TestMeasureRefusals(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 600)
	said := told(t, &skeptest.World{}, func(turn *skep.Turn) []error {
		_, size := turn.BlobPut(make([]byte, skep.MaxBlob+1))
		_, address := turn.BlobGet("tea")
		_, name := turn.Span("a\nb", nil)
		_, key := turn.Span("a", map[string]string{"": "x"})
		_, value := turn.Span("a", map[string]string{"k": long})
		_, none := turn.Span("", nil)
		return []error{
			size, address, name, key, value, none,
			turn.Count("Orders", 1, nil), turn.Count("orders", -1, nil), turn.Gauge("orders_total", 1, nil),
			turn.Count("orders", 1, skep.Labels{"agent": "x"}), turn.Count("orders", 1, skep.Labels{"A": "x"}), turn.Count("orders", 1, skep.Labels{"a": long}),
			turn.Call(skep.OpMetric, map[string]any{"name": "a"}, nil), turn.Call(skep.OpMetric, map[string]any{"name": "a", "value": 1, "kind": "sum"}, nil),
			turn.Call(skep.OpSpan, map[string]any{"id": -1}, nil), turn.Call(skep.OpSpan, map[string]any{"name": "a", "error": "x"}, nil),
			turn.Call(skep.OpBlobPut, map[string]any{}, nil),
		}
	})
	want := []string{
		"LIMIT: a blob of 3000001 bytes, at most 3000000; put it in parts",
		`INVALID: sha256 must be the 64 hexadecimal digits in lower case that blob.put has answered, not "tea"`,
		"INVALID: the name holds a control character",
		"INVALID: the name of an attribute must not be empty",
		"LIMIT: the attribute's value has 600 bytes, at most 256",
		"INVALID: the request must have either name, and begins a span, or id, and ends one",
		`INVALID: the name "Orders" does not match ^[a-z][a-z0-9_]{0,63}$`,
		"INVALID: a counter only grows: the value must be 0 or more, not -1",
		`INVALID: the name "orders_total" ends as those of counters do, so it is none for a gauge`,
		"INVALID: the label agent is not for agents; choose another name",
		`INVALID: the name "A" of a label does not match ^[a-z][a-z0-9_]{0,63}$`,
		"LIMIT: the value of the label a has 600 bytes, at most 64",
		"INVALID: metric: value is missing; it must be a number",
		`INVALID: the kind must be counter or gauge, not "sum"`,
		"INVALID: id must be what span has answered, not -1",
		"INVALID: error comes with id, when a span ends",
		"INVALID: blob.put: data is missing; it must be bytes as base64 with padding",
	}
	if !slices.Equal(said, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(want, "\n"))
	}
}

// So many of each, and no more.
func TestMeasureLimits(t *testing.T) {
	t.Parallel()
	said := told(t, &skeptest.World{}, func(turn *skep.Turn) (errs []error) {
		for i := range 65 {
			if _, err := turn.BlobPut(fmt.Append(nil, i)); err != nil {
				errs = append(errs, err)
			}
		}
		for range 101 {
			if _, err := turn.Span("a", nil); err != nil {
				errs = append(errs, err)
			}
		}
		for range 1001 {
			if err := turn.Count("a", 1, nil); err != nil {
				errs = append(errs, err)
			}
		}
		return errs
	})
	want := []string{"LIMIT: a turn may put 64 blobs", "LIMIT: a turn may have 100 spans", "LIMIT: a turn may report 1000 numbers"}
	if !slices.Equal(said, want) {
		t.Errorf("told %q, want %q", said, want)
	}
}

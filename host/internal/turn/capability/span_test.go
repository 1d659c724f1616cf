package capability

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
)

// spans are those that the records of the task have: name(parent){attributes},
// with ! for one that was cut.
func (h *host) spans(t *testing.T) string {
	t.Helper()
	records, err := h.store.Records(t.Context(), h.key(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var turns []string
	for _, r := range records {
		var list []string
		for _, s := range r.End.Spans {
			text := fmt.Sprintf("%s(%d)", s.Name, s.Parent)
			if s.Action != "" {
				text = s.Action + "/" + text
			}
			for _, name := range slices.Sorted(maps.Keys(s.Attributes)) {
				text += fmt.Sprintf("{%s=%s}", name, s.Attributes[name])
			}
			if s.Error != "" {
				text += "=" + s.Error
			}
			if s.Cut {
				text += "!"
			}
			if s.Offset < 0 || s.Duration < 0 {
				t.Errorf("span %+v", s)
			}
			list = append(list, text)
		}
		if len(list) > 0 {
			turns = append(turns, fmt.Sprintf("%d: %s", r.N, strings.Join(list, " ")))
		}
	}
	return strings.Join(turns, "; ")
}

// What op span answers, and what the record has of it.
func TestSpan(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 600)
	many := func(from, n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`"k%d":"v"`, from+i))
		}
		return "{" + strings.Join(list, ",") + "}"
	}
	calls := []struct{ req, want string }{
		{`{"name":"a","attributes":{"city":"Oslo"}}`, `{"id":1}`},
		{`{"name":"b"}`, `{"id":2}`},
		{`{"name":"c"}`, `{"id":3}`},
		{`{"id":2,"attributes":{"hits":"3"}}`, `{"id":2}`},
		{`{"name":"d"}`, `{"id":4}`},
		{`{"id":1,"error":"is empty","attributes":{"city":"Bergen"}}`, `{"id":1}`},
		{`{"id":1}`, `NOT_FOUND: there is no open span 1`},
		{`{"id":9}`, `NOT_FOUND: there is no open span 9`},
		{`{}`, `INVALID: the request must have either name, and begins a span, or id, and ends one`},
		{`{"id":3,"name":"c"}`, `INVALID: the request must have either name, and begins a span, or id, and ends one`},
		{`{"id":-3}`, `INVALID: id must be what span has answered, not -3`},
		{`{"id":"3"}`, `INVALID: span: id must be a whole number, not a text`},
		{`{"name":"c","error":"x"}`, `INVALID: error comes with id, when a span ends`},
		{`{"name":"a\nb"}`, `INVALID: the name holds a control character`},
		{`{"name":"` + long + `"}`, `LIMIT: the name has 600 bytes, at most 128`},
		{`{"id":3,"error":"` + long + `"}`, `LIMIT: the error has 600 bytes, at most 512`},
		{`{"id":3,"error":"a\u2028b"}`, `INVALID: the error holds a control character`},
		{`{"name":"c","attributes":{"":"x"}}`, `INVALID: the name of an attribute must not be empty`},
		{`{"name":"c","attributes":{"` + long + `":"x"}}`, `LIMIT: the attribute's name has 600 bytes, at most 64`},
		{`{"name":"c","attributes":{"x":"` + long + `"}}`, `LIMIT: the attribute's value has 600 bytes, at most 256`},
		{`{"name":"c","attributes":` + many(0, 17) + `}`, `LIMIT: a span of 17 attributes, at most 16`},
		{`{"name":"e","attributes":` + many(0, 16) + `}`, `{"id":5}`},
		{`{"id":5,"attributes":{"more":"x"}}`, `LIMIT: a span of 17 attributes, at most 16`},
		{`{"id":5,"attributes":{"k0":"w"}}`, `{"id":5}`},
	}
	h := oneAgent(t, func(v *visit) {
		var lines []string
		for _, c := range calls {
			lines = append(lines, v.call(abi.OpSpan, c.req))
		}
		v.tell(lines)
	})
	h.allow = Allow{} // it takes no grant
	h.start(0, false)
	defer h.stop()
	for i, got := range h.told(t) {
		if got != calls[i].want {
			t.Errorf("%.80s: %s\nwant %s", calls[i].req, got, calls[i].want)
		}
	}
	want := "1: a(0){city=Bergen}=is empty b(1){hits=3} c(2)! d(3)! e(4){k0=w}"
	if got := h.spans(t); !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
}

// A turn has so many spans, and so many bytes of them.
func TestSpanLimits(t *testing.T) {
	t.Parallel()
	h := oneAgent(t, func(v *visit) {
		var lines []string
		for range abi.MaxSpans {
			v.call(abi.OpSpan, `{"name":"a"}`)
		}
		lines = append(lines, v.call(abi.OpSpan, `{"name":"a"}`), v.call(abi.OpSpan, `{"id":100}`))
		value := strings.Repeat("x", abi.MaxSpanValue)
		for id := 1; ; id++ {
			var attributes []string
			for i := range abi.MaxSpanAttributes {
				attributes = append(attributes, fmt.Sprintf(`"%d":"%s"`, i, value))
			}
			told := v.call(abi.OpSpan, fmt.Sprintf(`{"id":%d,"attributes":{%s}}`, id, strings.Join(attributes, ",")))
			if strings.HasPrefix(told, "LIMIT") {
				v.tell(append(lines, fmt.Sprint(id), told))
				return
			}
		}
	})
	h.start(0, false)
	defer h.stop()
	told := h.told(t)
	want := []string{"LIMIT: a turn may have 100 spans", `{"id":100}`, "16", "LIMIT: the spans of the turn would have 65988 bytes of text, at most 65536"}
	if !slices.Equal(told, want) {
		t.Errorf("%q\nwant %q", told, want)
	}
	records, err := h.store.Records(t.Context(), h.key(), 0, 10)
	if err != nil || len(records[0].End.Spans) != abi.MaxSpans {
		t.Errorf("%v", err)
	}
}

// Metrics and values of an action in a process stay, once, when a host dies after it; of
// its spans, only the first run's stay.
func TestDeathAfterANonRepeatingActionThatMeasures(t *testing.T) {
	t.Parallel()
	for dies := int64(2); dies <= 5; dies++ {
		for _, behind := range []bool{false, true} {
			h := newHost(t)
			h.newNonRepeating("shop", func(v *visit, _ string) (string, *turn.Exit) {
				v.call(abi.OpSpan, `{"name":"inside"}`)
				v.call(abi.OpMetric, `{"name":"orders","value":3}`)
				v.call(abi.OpBlobPut, `{"data":"dGVhCg=="}`)
				v.call(abi.OpSpan, `{"id":1}`)
				return "1", nil
			})
			got, err := h.dying(dies, behind, func(v *visit) {
				lines := []string{v.call(abi.OpSpan, `{"name":"outside"}`)}
				v.call(abi.OpAction, `{"name":"shop","args":{}}`)
				v.call(abi.OpHTTPFetch, "one")
				v.tell(append(lines, v.call(abi.OpSpan, `{"name":"behind"}`), v.call(abi.OpSpan, `{"id":1}`), v.call(abi.OpBlobGet, blobAt(tea))))
			})
			if want := "{\"id\":1}\n{\"id\":2}\n{\"id\":1}\n{\"data\":\"dGVhCg==\"}"; err != nil || got.Body != want {
				t.Errorf("%d behind %v: %q, %v", dies, behind, got.Body, err)
			}
			if n := h.orders(); n != 3 && !(behind && n == 0) {
				t.Errorf("%d behind %v: %v orders", dies, behind, n)
			}
			if s := h.spans(t); s != "1: outside(0) shop/inside(1) behind(1)!" && s != "1: outside(0) behind(1)!" {
				t.Errorf("%d behind %v: %s", dies, behind, s)
			}
			h.stop()
		}
	}
}

// The ids of an action are its own, and the same when the turn is run again.
func TestSpansOverASuspension(t *testing.T) {
	t.Parallel()
	var told []string
	h := newShop(t, func(v *visit) {
		lines := []string{v.call(abi.OpSpan, `{"name":"a"}`)}
		v.call(abi.OpAction, `{"name":"confirm","args":{}}`)
		lines = append(lines, v.call(abi.OpSpan, `{"name":"b"}`), v.call(abi.OpSpan, `{"id":1}`))
		v.tell(lines)
	})
	h.start(0, false)
	if a, err := h.ask(); err != nil || a.State != swarm.StatePaused {
		t.Fatal(a, err)
	}
	h.restart()
	defer h.stop()
	a, err := h.resume(one("yes"))
	if told = strings.Split(a.Body, "\n"); err != nil || !slices.Equal(told, []string{`{"id":1}`, `{"id":2}`, `{"id":1}`}) {
		t.Errorf("%q, %v", told, err)
	}
	if got, want := h.spans(t), "1: a(0) b(1)!"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

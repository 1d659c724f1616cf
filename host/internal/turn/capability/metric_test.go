package capability

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/swarm/metrics"
	"skep/host/internal/turn"
	"skep/spec/mail"
)

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// orders is what the number of that name stands at.
func (h *host) orders() (sum float64) {
	for _, s := range h.rt.Metrics().Series() {
		if s.Name == "orders" {
			sum += s.Value
		}
	}
	return sum
}

// shown are all series of a host.
func shown(b *metrics.Registry) (lines []string) {
	for _, s := range b.Series() {
		lines = append(lines, fmt.Sprintf("%v %s %v %v %v", s.Owner, s.Name, s.Gauge, s.Labels, s.Value))
	}
	return lines
}

// What op metric answers, and what it counts.
func TestMetric(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 65)
	calls := []struct{ req, want string }{
		{`{"name":"orders","value":1}`, `{}`},
		{`{"name":"orders_total","value":0.5,"kind":"counter"}`, `{}`},
		{`{"name":"orders","value":1,"labels":{"item":"tea \"green\"","b":""}}`, `{}`},
		{`{"name":"orders","value":2,"labels":{"b":"","item":"tea \"green\""}}`, `{}`},
		{`{"name":"orders","value":-7,"kind":"gauge"}`, `{}`},
		{`{"name":"orders","value":-8,"kind":"gauge"}`, `{}`},
		{`{"name":"nothing","value":0}`, `{}`},
		{`{"value":1}`, `INVALID: the name "" does not match ^[a-z][a-z0-9_]{0,63}$`},
		{`{"name":"Orders","value":1}`, `INVALID: the name "Orders" does not match ^[a-z][a-z0-9_]{0,63}$`},
		{`{"name":"a\nb","value":1}`, `INVALID: the name "a\nb" does not match ^[a-z][a-z0-9_]{0,63}$`},
		{`{"name":"a"}`, `INVALID: metric: value is missing; it must be a number`},
		{`{"name":"a","value":"1"}`, `INVALID: metric: value must be a number, not a text`},
		{`{"name":"a","value":1e999}`, `INVALID: metric: value must be a number, not the number 1e999`},
		{`{"name":"a","value":-1}`, `INVALID: a counter only grows: the value must be 0 or more, not -1`},
		{`{"name":"a","value":1,"kind":"histogram"}`, `INVALID: the kind must be counter or gauge, not "histogram"`},
		{`{"name":"a_total","value":1,"kind":"gauge"}`, `INVALID: the name "a_total" ends as those of counters do, so it is none for a gauge`},
		{`{"name":"a","value":1,"labels":{"B":"x","A":"x"}}`, `INVALID: the name "A" of a label does not match ^[a-z][a-z0-9_]{0,63}$`},
		{`{"name":"a","value":1,"labels":{"tenant":"x"}}`, `INVALID: the label tenant is not for agents; choose another name`},
		{`{"name":"a","value":1,"labels":{"x":"` + long + `"}}`, `LIMIT: the label x has a value of 65 bytes, at most 64`},
		{`{"name":"a","value":1,"labels":{"x":"a\nb"}}`, `INVALID: the value of the label x holds a control character`},
		{`{"name":"a","value":1,"labels":{"x":1}}`, `INVALID: metric: labels.x must be a text, not the number 1`},
		{`{"name":"a","value":1,"labels":{"a":"","b":"","c":"","d":"","e":"","f":"","g":"","h":"","i":""}}`, `LIMIT: 9 labels, at most 8`},
		{`{"name":"a","value":1,"at":1}`, `INVALID: metric: at is no member; the members are name, value, kind, labels`},
	}
	h := oneAgent(t, func(v *visit) {
		var lines []string
		for _, c := range calls {
			lines = append(lines, v.call(abi.OpMetric, c.req))
		}
		v.tell(lines)
	})
	h.allow = Allow{} // it takes no grant
	h.start(0, false)
	defer h.stop()
	for i, got := range h.told(t) {
		if got != calls[i].want {
			t.Errorf("%s: %s\nwant %s", calls[i].req, got, calls[i].want)
		}
	}
	want := []string{
		"{default hive boss} nothing false [] 0", "{default hive boss} orders false [] 1.5", "{default hive boss} orders true [] -8",
		`{default hive boss} orders false [{b } {item tea "green"}] 3`,
	}
	if got := shown(h.rt.Metrics()); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// An agent may have so many series and a turn so many calls; the ones it has go on.
func TestMetricLimits(t *testing.T) {
	t.Parallel()
	h := oneAgent(t, func(v *visit) {
		var lines []string
		for i := range 102 {
			lines = append(lines, v.call(abi.OpMetric, fmt.Sprintf(`{"name":"orders","value":1,"labels":{"n":"%d"}}`, i)))
		}
		for range abi.MaxMetrics - len(lines) {
			v.call(abi.OpMetric, `{"name":"orders","value":1,"labels":{"n":"0"}}`)
		}
		lines = append(lines, v.call(abi.OpMetric, `{"name":"orders","value":1,"labels":{"n":"0"}}`))
		v.tell(lines)
	})
	h.start(0, false)
	defer h.stop()
	told := h.told(t)
	full := `LIMIT: agent "boss" has 100 series, at most 100: use fewer values of labels`
	if told[99] != "{}" || told[100] != full || told[101] != full || told[102] != "LIMIT: a turn may report 1000 numbers" {
		t.Errorf("%q", told[99:])
	}
	if n := len(h.rt.Metrics().Series()); n != 100 || h.orders() != 998 || h.rt.Metrics().Refused() != 2 {
		t.Errorf("%d series with %v orders, %d refused", n, h.orders(), h.rt.Metrics().Refused())
	}
}

// Metrics of an action carry its name, also if it fails; metrics of a failed turn count.
func TestMetricsOfWhatFails(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.newAction("price_of", func(v *visit, _ string) (string, *turn.Exit) {
		v.call(abi.OpMetric, `{"name":"orders","value":1}`)
		v.call(abi.OpSpan, `{"name":"inside"}`)
		v.call(abi.OpSpan, `{"name":"deeper"}`)
		return "", &turn.Exit{Kind: turn.ExitFailed, Message: "no"}
	})
	h.modules["boss"] = trapping{guest{"m1", func(v *visit) {
		v.call(abi.OpSpan, `{"name":"outside"}`)
		v.call(abi.OpAction, `{"name":"price_of","args":{}}`)
		v.call(abi.OpMetric, `{"name":"orders","value":2}`)
		v.call(abi.OpSpan, `{"name":"behind"}`)
		v.call(abi.OpSpan, `{"id":2,"error":"too late"}`)
	}}}
	h.start(0, false)
	defer h.stop()
	if a, err := h.ask(); err != nil || a.Subject != mail.SubjectAgentError {
		t.Fatal(a, err)
	}
	want := []string{"{default hive boss} orders false [] 2", "{default hive boss} orders false [{action price_of}] 1"}
	if got := shown(h.rt.Metrics()); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if got, want := h.spans(t), "1: outside(0)! price_of/inside(1)! price_of/deeper(2)! behind(1)=too late"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The numbers of a tenant go with it.
func TestMetricsAreErased(t *testing.T) {
	t.Parallel()
	h := oneAgent(t, func(v *visit) { v.tell([]string{v.call(abi.OpMetric, `{"name":"orders","value":1}`)}) })
	h.start(0, false)
	defer h.stop()
	if h.told(t); h.orders() != 1 {
		t.Errorf("%v orders", h.orders())
	}
	if err := h.rt.EraseTenant(t.Context(), swarm.DefaultTenant, nil); err != nil || len(h.rt.Metrics().Series()) != 0 {
		t.Errorf("%v, %v", h.rt.Metrics().Series(), err)
	}
}

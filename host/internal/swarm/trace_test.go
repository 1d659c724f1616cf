package swarm_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/swarm"
)

const someTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// fields lists what carries a trace.
func fields(t swarm.Trace) string {
	var list []string
	t.Fields(func(name, value string) { list = append(list, name+": "+value) })
	return strings.Join(list, "\n")
}

func TestTraceparent(t *testing.T) {
	t.Parallel()
	const a, b = someTrace, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
	for text, want := range map[string]string{
		a: a, b: b, "": "", "x": "", a + "-what": "", a + "," + b: "", a + "\n": "", strings.ToUpper(a): "",
		"ff" + a[2:]:                             "",
		"cc" + a[2:]:                             a,
		"cc" + a[2:len(a)-2] + "03-what":         a,
		"cc" + a[2:] + "what":                    "",
		"cc" + b[2:len(b)-2] + "02":              b,
		"00-" + strings.Repeat("0", 32) + a[35:]: "",
		a[:36] + strings.Repeat("0", 16) + "-01": "",
	} {
		if got := swarm.ParseTrace(text, "").Parent(); got != want {
			t.Errorf("%q is read as %q, want %q", text, got, want)
		}
	}
}

func TestTracestate(t *testing.T) {
	t.Parallel()
	numbered := func(n int, value string) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("k%02d=%s", i, value))
		}
		return strings.Join(list, ",")
	}
	long := "long=" + strings.Repeat("x", 200)
	for name, c := range map[string]struct{ text, want string }{
		"one":               {"rojo=00f067aa0ba902b7", "rojo=00f067aa0ba902b7"},
		"spaces, empty":     {" a=1\t,, ,b=2 x ,", "a=1,b=2 x"},
		"of a tenant":       {"fw529a3039@dt=FfnWzgjE!~", "fw529a3039@dt=FfnWzgjE!~"},
		"none":              {"", ""},
		"no value":          {"a=1,b=", ""},
		"no key":            {"=1", ""},
		"two equals signs":  {"a=1=2", ""},
		"a capital":         {"A=1", ""},
		"two at signs":      {"a@b@c=1", ""},
		"a line":            {"a=1\r\nX: y", ""},
		"no ASCII":          {"a=é", ""},
		"the same key":      {"a=1,b=2,a=3", ""},
		"a long key":        {strings.Repeat("k", 257) + "=1", ""},
		"32 members":        {numbered(32, "1"), numbered(32, "1")},
		"33 members":        {numbered(33, "1"), ""},
		"a long one, fits":  {long + ",b=2", long + ",b=2"},
		"a long one, over":  {"a=" + strings.Repeat("y", 120) + "," + long + "," + numbered(20, strings.Repeat("z", 10)), "a=" + strings.Repeat("y", 120) + "," + numbered(20, strings.Repeat("z", 10))},
		"the last ones":     {numbered(32, strings.Repeat("z", 30)), numbered(14, strings.Repeat("z", 30))},
		"long ones, enough": {long + ",o" + long + ",p" + long, long + ",o" + long},
	} {
		want := "traceparent: " + someTrace
		if c.want != "" {
			want += "\ntracestate: " + c.want
		}
		if got := fields(swarm.ParseTrace(someTrace, c.text)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := fields(swarm.ParseTrace("x", "a=1")); got != "" {
		t.Errorf("a state without a trace is carried: %s", got)
	}
}

func TestTraceOfHeader(t *testing.T) {
	t.Parallel()
	head := http.Header{"Traceparent": {someTrace}, "Tracestate": {"a=1", "b=2"}}
	if got, want := fields(swarm.HeaderTrace(head)), "traceparent: "+someTrace+"\ntracestate: a=1,b=2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	head.Add("Traceparent", someTrace)
	if got := fields(swarm.HeaderTrace(head)); got != "" {
		t.Errorf("two traceparents are %s", got)
	}
}

// A record of before there were states has the traceparent alone.
func TestTraceIsStored(t *testing.T) {
	t.Parallel()
	type row struct {
		Trace swarm.Trace `json:"trace,omitzero"`
	}
	for trace, want := range map[swarm.Trace]string{
		{}:                                       `{}`,
		swarm.ParseTrace(someTrace, ""):          `{"trace":"` + someTrace + `"}`,
		swarm.ParseTrace(someTrace, "a=1,b=x y"): `{"trace":"` + someTrace + ` a=1,b=x y"}`,
	} {
		raw, err := json.Marshal(row{trace})
		if err != nil || string(raw) != want {
			t.Fatalf("%s, %v, want %s", raw, err, want)
		}
		var read row
		if err := json.Unmarshal(raw, &read); err != nil || read.Trace != trace {
			t.Errorf("%+v, %v, want %+v", read.Trace, err, trace)
		}
	}
}

// A task whose trace is not kept, and that no caller has begun, carries no context, nor does its
// mail; what it sends to another swarm has the one of a trace that is not kept, of its own id.
func TestTraceNotKept(t *testing.T) {
	t.Parallel()
	h := newHive(t, func(h *hive) {
		h.forward = anyForwarder{}
		h.def.Interswarm, h.def.Agents[0].Interswarm = true, true
		h.def.Agents[0].Targets = append(h.def.Agents[0].Targets, "chief@depot")
		h.opt.Sample = func([16]byte) bool { return false }
	})
	sent := map[string]swarm.Trace{}
	for name, change := range map[string]func(*swarm.Post){
		"agent": func(*swarm.Post) {}, "post": to("chief@depot"),
		"caller": func(p *swarm.Post) { p.Trace = swarm.ParseTrace(someTrace, "") },
	} {
		h.mustPost(requestTo("chief@depot", "x"), task(name), change)
		eventually(t, "the request leaves", func() bool { return len(h.record(name).Outbox) == 1 })
		snap := h.record(name)
		sent[name] = snap.Outbox[0].Trace
		if has := snap.Task.Trace != nil; has != (name == "caller") {
			t.Errorf("%s: the task has the trace %+v", name, snap.Task.Trace)
		}
	}
	for _, name := range []string{"agent", "post"} {
		id, span, kept := sent[name].IDs()
		if kept || id == ([16]byte{}) || span == ([8]byte{}) || swarm.ParseTrace(sent[name].Parent(), "") != sent[name] {
			t.Errorf("%s: the message has the context %q", name, sent[name].Parent())
		}
	}
	if first, _, _ := sent["agent"].IDs(); strings.Contains(sent["post"].Parent(), fmt.Sprintf("%x", first)) {
		t.Error("two tasks have one trace")
	}
	if _, _, kept := sent["caller"].IDs(); !kept || !strings.HasPrefix(sent["caller"].Parent(), someTrace[:36]) {
		t.Errorf("a caller's trace goes on as %q", sent["caller"].Parent())
	}
}

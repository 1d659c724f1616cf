package capability

import (
	"context"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
)

// The record of a turn counts its calls, whatever becomes of them, each once on
// however many attempts.
func TestCallsAreCounted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	h := online(t, s, func(v *visit) {
		cas := v.call(abi.OpKVCas, `{"key":"k","expect":null,"value":"v"}`)
		v.call(abi.OpKVCas, `{"key":"k","expect":null,"value":"w"}`)
		v.call(999, "{}")
		v.call(abi.OpHTTPFetch, fetch("https://nobody.test"))
		v.tell([]string{cas, v.call(abi.OpHTTPFetch, fetch(s.URL)), v.call(abi.OpClockNow, "{}"), v.call(abi.OpKVCas, `{"key":"l","expect":null,"value":"v"}`)})
	})
	h.allow.KV = swarm.KVAgent
	h.start(4, false) // a post, two values, an intent; not the answer
	_, _ = h.ask()
	h.stop()
	h.start(0, false)
	defer h.stop()
	if got := h.told(t); got[0] != `{"ok":true}` {
		t.Errorf("told %q", got)
	}
	rec, err := h.store.Record(context.Background(), h.key(), 1)
	if err != nil || rec.End == nil || rec.End.Attempt != 2 {
		t.Fatalf("%+v, %v", rec.End, err)
	}
	for op, want := range map[abi.Op]int64{abi.OpKVCas: 3, 999: 1, abi.OpHTTPFetch: 2, abi.OpClockNow: 1, abi.OpRandom: 0} {
		if got := rec.End.Calls[op]; got != want {
			t.Errorf("%d calls of %s, want %d", got, op, want)
		}
	}
}

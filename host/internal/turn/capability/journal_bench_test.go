package capability

import (
	"context"
	"testing"
	"time"

	"skep/abi"
)

// What recording adds to an op that does nothing.
func BenchmarkRecordedOp(b *testing.B) {
	clock := &stillClock{later}
	now := func() time.Time { return later }
	all := table{abi.OpKVGet: {direct: func(*ops, context.Context, []byte) ([]byte, *abi.Error) { return []byte("{}"), nil }}}
	req := []byte(`{"key":"a"}`)
	fresh := func() *ops {
		return &ops{table: all, clock: clock, now: now, j: newJournal(b.Context(), &fakeWriter{}, &fakeWriter{}, clock, now)}
	}
	b.ReportAllocs()
	o := fresh()
	for i := 0; b.Loop(); i++ {
		if i%1000 == 999 {
			o.j.stop(nil)
			o = fresh()
		}
		if _, fault := o.Call(b.Context(), abi.OpKVGet, req); fault != nil {
			b.Fatal(fault)
		}
	}
}

package main

import "testing"

// A step under way has the times that its record has: one of a record without the time of its begin
// has none.
func TestTimesOf(t *testing.T) {
	t.Parallel()
	const noon = 1_767_268_800_000 // ms
	for _, c := range []struct {
		of   run
		want string
	}{
		{run{Since: noon}, "  since 2026-01-01T12:00:00Z"},
		{run{Since: noon, Due: noon + 1000}, "  since 2026-01-01T12:00:00Z until 2026-01-01T12:00:01Z"},
		{run{}, ""},
		{run{Due: noon}, "  until 2026-01-01T12:00:00Z"},
	} {
		w := &work{flow: &flow{Runs: []run{c.of}}}
		if got := w.timesOf(0); got != c.want {
			t.Errorf("%+v: %q, want %q", c.of, got, c.want)
		}
	}
}

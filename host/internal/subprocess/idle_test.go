package subprocess

import (
	"testing"
	"time"
)

// A process has rested when it had no turn for long enough, once.
func TestRested(t *testing.T) {
	t.Parallel()
	hourAgo := time.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		p    *process
		idle time.Duration
		want bool
	}{
		"long ago":   {&process{since: hourAgo}, time.Minute, true},
		"just now":   {&process{since: time.Now()}, time.Minute, false},
		"in a turn":  {&process{since: hourAgo, turns: 1}, time.Minute, false},
		"ended soon": {&process{since: hourAgo, retired: true}, time.Minute, false},
	} {
		if got := c.p.rested(c.idle); got != c.want || c.p.retired != (c.want || name == "ended soon") {
			t.Errorf("%s: %v, retired %v", name, got, c.p.retired)
		}
	}
}

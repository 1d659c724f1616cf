package process

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
		"long ago":   {&process{idleSince: hourAgo}, time.Minute, true},
		"just now":   {&process{idleSince: time.Now()}, time.Minute, false},
		"in a turn":  {&process{idleSince: hourAgo, turns: 1}, time.Minute, false},
		"ended soon": {&process{idleSince: hourAgo, retired: true}, time.Minute, false},
	} {
		if got := c.p.retireIfIdle(c.idle); got != c.want || c.p.retired != (c.want || name == "ended soon") {
			t.Errorf("%s: %v, retired %v", name, got, c.p.retired)
		}
	}
}

package subprocess

import "time"

// WithHealth sets how often a process is looked at, and how long that may take.
func (o Options) WithHealth(every, patience time.Duration) Options {
	o.health = [2]time.Duration{every, patience}
	return o
}

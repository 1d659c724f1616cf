package process

import (
	"net"
	"time"
)

// Few is a listener that closes every connection beyond so many.
func Few(l net.Listener, most int) net.Listener {
	return newLimitedListener(l, most, func(net.Conn) bool { return true })
}

// WithHealth sets how often a process is looked at, and how long that may take.
func (o Options) WithHealth(every, patience time.Duration) Options {
	o.health = [2]time.Duration{every, patience}
	return o
}

// WithStart sets how long a process may take until it can be asked.
func (o Options) WithStart(most time.Duration) Options {
	o.startTimeout = most
	return o
}

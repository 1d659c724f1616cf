package listener

import (
	"context"
	"time"
)

// Look looks at the files, as Run does.
func (c *Certificates) Look() { c.reload(context.Background(), false) }

// Warn logs the certificate's expiry, as Run does.
func (c *Certificates) Warn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logExpiry()
}

// Hang makes every read of the files block until free is closed, and sets the
// time after which it is logged.
func (c *Certificates) Hang(free <-chan struct{}, told time.Duration) {
	read := c.read
	c.read, c.slowAfter = func() (fileContent, error) { <-free; return read() }, told
}

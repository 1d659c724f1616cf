package listen

import (
	"context"
	"time"
)

// Look looks at the files, as Run does.
func (c *Certificates) Look() { c.look(context.Background(), false) }

// Warn says what Run says of the certificate's end.
func (c *Certificates) Warn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warn()
}

// Hang keeps every reading of the files from ending until free is closed, and has it
// told after a while.
func (c *Certificates) Hang(free <-chan struct{}, told time.Duration) {
	read := c.read
	c.read, c.patience = func() (content, error) { <-free; return read() }, told
}

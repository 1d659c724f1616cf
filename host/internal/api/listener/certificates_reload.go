package listener

import (
	"context"
	"time"
)

// readTimeout is how long reading the files may take before it is logged.
const readTimeout = 10 * time.Second

// readResult is the result of one read of the files.
type readResult struct {
	fileContent
	err error
}

// Run reads the files periodically until ctx ends. It does not wait for a read
// that blocks: its goroutine ends with the read or with the process.
func (c *Certificates) Run(ctx context.Context) {
	tick := time.NewTicker(c.opt.ReloadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		c.reload(ctx, false)
		c.mu.Lock()
		c.logExpiry()
		c.mu.Unlock()
	}
}

// Reload reads the files now. Invalid files leave the old certificate in use and
// are logged. It does not wait for a read that blocks.
func (c *Certificates) Reload(ctx context.Context) { c.reload(ctx, true) }

// reload reads the files and applies changes. If the reload was requested, it
// leaves a read that takes too long to the next periodic one.
func (c *Certificates) reload(ctx context.Context, asked bool) {
	read := make(chan readResult, 1)
	go func() {
		text, err := c.read()
		read <- readResult{text, err}
	}()
	slow := time.NewTimer(c.slowAfter)
	defer slow.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-slow.C:
			c.noteStuck()
			if asked {
				return
			}
		case r := <-read:
			c.applyReload(r, asked)
			return
		}
	}
}

// noteStuck records and logs that reading takes too long.
func (c *Certificates) noteStuck() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stuck = true
	c.opt.Logger.Error("the files of the certificate do not let themselves be read; the old one stays", "cert", c.opt.Cert, "expires", c.Expires())
}

// applyReload puts a read content in use. The files are replaced one after the
// other, so a fault is logged when it persists at the next read, or at once if
// the reload was requested.
func (c *Certificates) applyReload(r readResult, asked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stuck = false
	changed, err := false, r.err
	if err == nil {
		changed, err = c.serve(r.fileContent)
	}
	if err == nil {
		mended := c.logged != ""
		c.lastError, c.logged = "", ""
		switch {
		case changed:
			c.logInUse(r.fileContent)
		case mended:
			c.opt.Logger.Info("the certificate on disk is whole again, and the one in use", "cert", c.opt.Cert, "expires", c.Expires())
		}
		return
	}
	again := err.Error() == c.lastError
	c.lastError = err.Error()
	if (asked || again) && c.logged != c.lastError {
		c.logged = c.lastError
		c.opt.Logger.Error("the certificate on disk cannot be used; the old one stays", "err", c.lastError, "expires", c.Expires())
	}
}

// logInUse logs the new certificate.
func (c *Certificates) logInUse(text fileContent) {
	c.opt.Logger.Info("new certificate in use", "cert", c.opt.Cert, "expires", c.Expires())
	if text.exposed {
		c.opt.Logger.Warn("everybody on this machine can read the key; chmod 600 it", "key", c.opt.Key)
	}
}

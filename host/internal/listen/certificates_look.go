package listen

import (
	"context"
	"os"
	"time"
)

// patience is how long the files may take before operators hear of it.
const patience = 10 * time.Second

// reading is what came of one look into the files.
type reading struct {
	content
	err error
}

// Run looks at the files now and then, and whenever hangups has something, until
// ctx ends. It does not wait then for files that do not let themselves be read: what
// reads them ends when they do, or with the process.
func (c *Certificates) Run(ctx context.Context, hangups <-chan os.Signal) {
	tick := time.NewTicker(c.opt.Look)
	defer tick.Stop()
	for {
		asked := false
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-hangups:
			asked = true
		}
		c.look(ctx, asked)
		c.mu.Lock()
		c.warn()
		c.mu.Unlock()
	}
}

// Reload takes what the files hold now. What cannot be served leaves the old in
// use, and is logged.
func (c *Certificates) Reload() { c.look(context.Background(), true) }

// look reads the files and takes what has changed.
func (c *Certificates) look(ctx context.Context, asked bool) {
	read := make(chan reading, 1)
	go func() {
		text, err := c.read()
		read <- reading{text, err}
	}()
	slow := time.NewTimer(c.patience)
	defer slow.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-slow.C:
			c.wait()
		case r := <-read:
			c.judge(r, asked)
			return
		}
	}
}

// wait notes that the files take too long.
func (c *Certificates) wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stuck = true
	c.opt.Logger.Error("the files of the certificate do not let themselves be read; the old one stays", "cert", c.opt.Cert, "expires", c.Expires())
}

// judge takes what was read. Files are replaced one after the other, so what is
// broken is logged when it still is at the next look, or at once if it was asked
// for.
func (c *Certificates) judge(r reading, asked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stuck = false
	changed, err := false, r.err
	if err == nil {
		changed, err = c.take(r.content)
	}
	if err == nil {
		mended := c.told != ""
		c.broken, c.told = "", ""
		switch {
		case changed:
			c.welcome(r.content)
		case mended:
			c.opt.Logger.Info("the certificate on disk is whole again, and the one in use", "cert", c.opt.Cert, "expires", c.Expires())
		}
		return
	}
	again := err.Error() == c.broken
	c.broken = err.Error()
	if (asked || again) && c.told != c.broken {
		c.told = c.broken
		c.opt.Logger.Error("the certificate on disk cannot be used; the old one stays", "err", c.broken, "expires", c.Expires())
	}
}

// welcome logs that what was read is in use.
func (c *Certificates) welcome(text content) {
	c.opt.Logger.Info("new certificate in use", "cert", c.opt.Cert, "expires", c.Expires())
	if text.exposed {
		c.opt.Logger.Warn("everybody on this machine can read the key; chmod 600 it", "key", c.opt.Key)
	}
}

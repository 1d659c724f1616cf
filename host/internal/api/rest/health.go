package rest

import (
	"sync"
	"time"
)

// health is the status that GET /health returns: "healthy" until an admin sets
// another.
type health struct {
	mu     sync.Mutex
	status string
	since  time.Time
}

func newHealth(since time.Time) *health { return &health{status: "healthy", since: since} }

func (h *health) get() (status string, since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.status, h.since
}

func (h *health) set(status string, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status, h.since = status, now
}

// maxStatus bounds a health status, in bytes.
const maxStatus = 256

// getHealth is GET /health (S-15). The timestamp is the time of the last change.
func (c *call) getHealth() error {
	status, since := c.h.health.get()
	return c.reply(struct {
		Status string `json:"status"`
		Swarm  string `json:"swarm_name"`
		Time   string `json:"timestamp"`
	}{status, c.h.opt.Swarm, formatTime(since)})
}

// postHealth is POST /health.
func (c *call) postHealth() error {
	if c.w.who.Tenant != c.h.opt.Tenant {
		return forbidden("invalid role: the health of the host is for admins of tenant '" + c.h.opt.Tenant + "' to set")
	}
	o, err := c.bodyObject()
	if err != nil {
		return err
	}
	status, err := o.str("status")
	switch {
	case err != nil:
		return err
	case status == "":
		return badRequest("status is required")
	case len(status) > maxStatus:
		return badRequest("status has %d bytes, at most %d", len(status), maxStatus)
	}
	if err := c.auditAct("health.set", status, nil); err != nil {
		return err
	}
	c.h.health.set(status, c.h.opt.Now())
	return c.getHealth()
}

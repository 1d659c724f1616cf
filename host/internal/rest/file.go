package rest

import (
	"context"
	"net/http"

	"skep/host/internal/plan"
)

// File is the operator's file, as the host can read it again. Its methods are
// safe for concurrent use. Refusals are *swarm.Refusal, whose text callers are
// shown.
type File interface {
	// Plan compares the file with what runs.
	Plan(ctx context.Context) ([]plan.Change, error)
	// Reload takes it over, all of it or nothing, and returns what has changed.
	Reload(ctx context.Context) ([]plan.Change, error)
}

// noFile is that of a host without one.
type noFile struct{}

var errNoFile = newFault(http.StatusServiceUnavailable, "this host has no file to read again")

func (noFile) Plan(context.Context) ([]plan.Change, error)   { return nil, errNoFile }
func (noFile) Reload(context.Context) ([]plan.Change, error) { return nil, errNoFile }

// plan is GET /skep/v1/plan.
func (c *call) plan() error {
	changes, err := c.h.opt.File.Plan(c.ctx())
	if err != nil {
		return err
	}
	return c.replyChanges(changes)
}

// reload is POST /skep/v1/reload.
func (c *call) reload() error {
	changes, err := c.h.opt.File.Reload(c.ctx())
	if err := c.did("config.reload", c.h.opt.Swarm, err); err != nil {
		return err
	}
	return c.replyChanges(changes)
}

func (c *call) replyChanges(changes []plan.Change) error {
	return c.reply(struct {
		Changes []plan.Change `json:"changes"`
	}{changes})
}

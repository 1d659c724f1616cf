package rest

import (
	"context"
	"net/http"

	"skep/host/internal/definition/plan"
)

// ConfigFile reads the operator's file again. Its methods are safe for concurrent
// use. Refusals are *swarm.Refusal; callers see their text.
type ConfigFile interface {
	// Plan compares the file with the running configuration.
	Plan(ctx context.Context) ([]plan.Change, error)
	// Reload applies the whole file or nothing, and returns what changed.
	Reload(ctx context.Context) ([]plan.Change, error)
}

// noConfigFile is the ConfigFile of a host without one.
type noConfigFile struct{}

var errNoConfigFile = newFault(http.StatusServiceUnavailable, "this host has no file to read again")

func (noConfigFile) Plan(context.Context) ([]plan.Change, error)   { return nil, errNoConfigFile }
func (noConfigFile) Reload(context.Context) ([]plan.Change, error) { return nil, errNoConfigFile }

// plan is GET /skep/v1/plan.
func (c *call) plan() error {
	changes, err := c.h.opt.ConfigFile.Plan(c.ctx())
	if err != nil {
		return err
	}
	return c.replyChanges(changes)
}

// reload is POST /skep/v1/reload.
func (c *call) reload() error {
	changes, err := c.h.opt.ConfigFile.Reload(c.ctx())
	if err := c.auditAct("config.reload", c.h.opt.Swarm, err); err != nil {
		return err
	}
	return c.replyChanges(changes)
}

func (c *call) replyChanges(changes []plan.Change) error {
	return c.reply(struct {
		Changes []plan.Change `json:"changes"`
	}{changes})
}

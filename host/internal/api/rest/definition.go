package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"skep/host/internal/swarm"
)

// Definitions accepts swarm definitions over the network. Its methods are safe
// for concurrent use.
type Definitions interface {
	// Load replaces the tenant's definition and returns its name. When it
	// returns, the definition is durable and applies to every new task. A
	// definition may only recombine what the operator's file grants. Refusals are
	// *swarm.Refusal; callers see their text. by is the caller.
	Load(ctx context.Context, tenant, by string, definition []byte) (name string, err error)
	// Unload restores the definition of the operator's file; it is durable on
	// return.
	Unload(ctx context.Context, tenant string) error
	// InForce returns the definition for new tasks of the tenant.
	InForce(tenant string) InForce
}

// InForce is a definition in force.
type InForce struct {
	Swarm, Digest string
	// Origin is "file" or "network". By and At are set for "network".
	Origin, By string
	At         time.Time
	Definition json.RawMessage
}

// noDefinitions accepts none.
type noDefinitions struct{}

var errNoDefinitions = newFault(http.StatusServiceUnavailable, "this host takes no swarm definitions over the network")

func (noDefinitions) Load(context.Context, string, string, []byte) (string, error) {
	return "", errNoDefinitions
}
func (noDefinitions) Unload(context.Context, string) error { return errNoDefinitions }
func (noDefinitions) InForce(string) InForce               { return InForce{} }

// dumpSwarm is GET /swarms/dump: it logs the definition and returns its name.
func (c *call) dumpSwarm() error {
	def, err := c.definition()
	if err != nil {
		return err
	}
	var agents []string
	for _, a := range def.Agents {
		agents = append(agents, a.Name)
	}
	c.h.opt.Logger.Info("swarm dumped", "swarm", def.Name, "tenant", def.Tenant, "agents", strings.Join(agents, " "), "by", c.w.who.String())
	if err := c.auditAct("swarm.dump", def.Name, nil); err != nil {
		return err
	}
	return c.replyLoaded("dumped", def.Name)
}

// loadSwarm is POST /swarms/load.
func (c *call) loadSwarm() error {
	o, err := c.bodyObject()
	if err != nil {
		return err
	}
	text, err := o.str("json")
	switch {
	case err != nil:
		return err
	case text == "":
		return badRequest("json is required: one swarm definition, as a string")
	}
	name, err := c.h.opt.Definitions.Load(c.ctx(), c.w.who.Tenant, c.w.who.String(), []byte(text))
	var refused *swarm.Refusal
	if errors.As(err, &refused) && errors.Is(refused, swarm.ErrInvalid) {
		f := badRequest("error loading swarm from JSON: %s", refused.Text)
		f.reason = "definition refused: " + refused.Text
		err = f
	}
	if err := c.auditAct("swarm.load", c.h.opt.Swarm, err); err != nil {
		return err
	}
	return c.replyLoaded("success", name)
}

func (c *call) replyLoaded(status, name string) error {
	return c.reply(struct {
		Status string `json:"status"`
		Name   string `json:"swarm_name"`
	}{status, name})
}

// showDefinition is GET /skep/v1/definition.
func (c *call) showDefinition() error {
	if _, err := c.definition(); err != nil {
		return err
	}
	in := c.h.opt.Definitions.InForce(c.w.who.Tenant)
	if in.Digest == "" {
		return errNoDefinitions
	}
	return c.reply(struct {
		Tenant     string          `json:"tenant"`
		Swarm      string          `json:"swarm"`
		Digest     string          `json:"digest"`
		Origin     string          `json:"origin"`
		By         string          `json:"by"`
		At         *string         `json:"at"`
		Definition json.RawMessage `json:"definition"`
	}{c.w.who.Tenant, in.Swarm, in.Digest, in.Origin, in.By, formatTimeOrNull(in.At), in.Definition})
}

// unloadDefinition is DELETE /skep/v1/definition.
func (c *call) unloadDefinition() error {
	err := c.h.opt.Definitions.Unload(c.ctx(), c.w.who.Tenant)
	if err := c.auditAct("swarm.unload", c.h.opt.Swarm, err); err != nil {
		return err
	}
	return c.showDefinition()
}

package rest

import (
	"cmp"
	"context"
	"net/http"
	"strconv"

	"skep/host/internal/swarm"
)

// call is one request that has a route: the caller is known as far as the
// route asks, and the body is read.
type call struct {
	h *Handler
	w *recorder
	r *http.Request
	// token is what the caller showed, empty on a route that asks for none.
	token string
	// body is what a route that takes one was sent.
	body []byte
}

func (c *call) ctx() context.Context { return c.r.Context() }

// reply answers with 200.
func (c *call) reply(v any) error {
	reply(c.w, http.StatusOK, v)
	return nil
}

// principal is the caller as the swarm knows it.
func (c *call) principal() swarm.Principal {
	return swarm.Principal{Tenant: c.w.who.Tenant, Role: c.w.who.Role.Mail(), ID: c.w.who.ID}
}

// instance is the caller's. Nothing but this instance is ever looked into, so
// what belongs to others does not exist for the caller.
func (c *call) instance() swarm.InstanceKey { return c.principal().Instance(c.h.opt.Swarm) }

func (c *call) task(id string) swarm.TaskKey {
	return swarm.TaskKey{InstanceKey: c.instance(), Task: id}
}

// definition is the swarm's, as the tenant of the caller or of the listener
// has it.
func (c *call) definition() (*swarm.Definition, error) {
	tenant := cmp.Or(c.w.who.Tenant, c.h.opt.Tenant)
	def, ok := c.h.rt.Definition(tenant, c.h.opt.Swarm)
	if !ok {
		return nil, newFault(http.StatusServiceUnavailable, "no swarm loaded")
	}
	return def, nil
}

// number reads a query parameter that is a number from least to most.
func (c *call) number(name string, def, least, most int64) (int64, error) {
	text := c.r.URL.Query().Get(name)
	if text == "" {
		return def, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, badRequest("%s must be a number from %d to %d", name, least, most)
	}
	return n, nil
}

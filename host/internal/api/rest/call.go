package rest

import (
	"cmp"
	"context"
	"net/http"
	"net/url"

	"skep/host/internal/swarm"
)

// call is one request that was routed: the caller is authenticated as far as the
// route needs, and the body is read.
type call struct {
	h *Handler
	w *recorder
	r *http.Request
	// cancel ends the request of a mount, and is nil for others.
	cancel context.CancelCauseFunc
	// leave ends the count of a mount's stream, streams is set for one that is counted.
	leave   func()
	streams bool
	// identified is set when a mount's handler has asked for the caller, with identifyErr.
	identified  bool
	identifyErr error
	// isHop is set for a request from another host, which has charged the limits.
	isHop bool
	// forwards is set for the request of a mount that another host can answer.
	forwards bool
	// ownKey is the key of a post without one; see hopKey.
	ownKey string
	// token is the caller's credential, empty on a route that needs none.
	token string
	// body is empty on a route that takes none.
	body []byte
	// members are the body's, once a handler reads them.
	members *object
	// query are the values of the URL's query, and asked the names whose values were
	// read.
	query url.Values
	asked []string
}

func (c *call) ctx() context.Context { return c.r.Context() }

// reply answers with 200.
func (c *call) reply(v any) error {
	reply(c.w, http.StatusOK, v)
	return nil
}

// principal returns the caller as swarm's type.
func (c *call) principal() swarm.Principal {
	return swarm.Principal{Tenant: c.w.who.Tenant, Role: c.w.who.Role.Mail(), ID: c.w.who.ID}
}

// instanceKey returns the key of the caller's instance. Handlers read no other
// instance, so a task of another caller is not found.
func (c *call) instanceKey() swarm.InstanceKey { return c.principal().Instance(c.h.opt.Swarm) }

func (c *call) taskKey(id string) swarm.TaskKey {
	return swarm.TaskKey{InstanceKey: c.instanceKey(), Task: id}
}

// definition returns the swarm as the tenant of the caller, or else of the
// listener, has it.
func (c *call) definition() (*swarm.Definition, error) {
	tenant := cmp.Or(c.w.who.Tenant, c.h.opt.Tenant)
	def, ok := c.h.swarms.Definition(tenant, c.h.opt.Swarm)
	if !ok {
		return nil, newFault(http.StatusServiceUnavailable, "no swarm loaded")
	}
	return def, nil
}

// bodyObject reads the body, one JSON object.
func (c *call) bodyObject() (o *object, err error) {
	c.members, err = parseObject(c.body, c.h.opt.MaxDepth)
	return c.members, err
}

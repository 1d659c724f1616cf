package rest

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"skep/host/internal/swarm"
)

// call is one request that was routed: the caller is authenticated as far as the
// route needs, and the body is read.
type call struct {
	h *Handler
	w *recorder
	r *http.Request
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

// param reads a value of the query; it is empty when there is none. A name that stands
// there twice is refused.
func (c *call) param(name string) (string, error) {
	if c.query == nil {
		var err error
		if c.query, err = url.ParseQuery(c.r.URL.RawQuery); err != nil {
			return "", badRequest("the query of the URL cannot be read: %v", err)
		}
	}
	if n := len(c.query[name]); n > 1 {
		return "", badRequest("%s stands %d times in the query", name, n)
	}
	value := c.query.Get(name)
	if value != "" {
		c.asked = append(c.asked, name)
	}
	return value, nil
}

// ignoredHeader names what the request has and no handler reads.
const ignoredHeader = "X-Skep-Ignored"

// maxIgnored bounds how many names the header has.
const maxIgnored = 8

// setIgnored sets the header for members of the body, and for parameters of the
// query as "?name".
func (c *call) setIgnored(head http.Header) {
	var names []string
	for name := range c.r.URL.Query() {
		if !slices.Contains(c.asked, name) {
			names = append(names, "?"+name)
		}
	}
	slices.Sort(names)
	if c.members != nil {
		names = append(names, c.members.unread()...)
	}
	if len(names) == 0 {
		return
	}
	if more := len(names) - maxIgnored; more > 0 {
		names = append(names[:maxIgnored], "and "+strconv.Itoa(more)+" more")
	}
	for i, name := range names {
		names[i] = strings.ReplaceAll(encodeHeader(truncate(name)), ",", "%2C")
	}
	head.Set(ignoredHeader, strings.Join(names, ", "))
}

// intParam reads a number from least to most in the query.
func (c *call) intParam(name string, def, least, most int64) (int64, error) {
	text, err := c.param(name)
	if err != nil || text == "" {
		return def, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, badRequest("%s must be a number from %d to %d", name, least, most)
	}
	return n, nil
}

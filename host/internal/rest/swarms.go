package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"skep/host/internal/auth"
	"skep/host/internal/registry"
)

// Registry is what the routes need to know other swarms. Its methods are safe
// for concurrent use. Refusals are *swarm.Refusal, whose text callers are shown.
type Registry interface {
	// Entries lists the swarms that are known, in their order.
	Entries() []registry.Entry
	// Register asks a swarm what it is and makes it known; an entry that lasts
	// is durable on return.
	Register(ctx context.Context, q registry.Request) (registry.Entry, error)
	// Remove forgets a swarm that was registered, and returns what it was; that
	// is durable on return.
	Remove(name string, operator bool) (registry.Entry, error)
	// Ping asks a swarm now whether it is well; that it is not is no error.
	Ping(ctx context.Context, name string) (registry.Entry, error)
}

var _ Registry = (*registry.Registry)(nil)

// noRegistry knows none.
type noRegistry struct{}

var errNoRegistry = newFault(http.StatusServiceUnavailable, "swarm registry not available")

func (noRegistry) Entries() []registry.Entry { return nil }
func (noRegistry) Register(context.Context, registry.Request) (registry.Entry, error) {
	return registry.Entry{}, errNoRegistry
}
func (noRegistry) Remove(string, bool) (registry.Entry, error) {
	return registry.Entry{}, errNoRegistry
}
func (noRegistry) Ping(context.Context, string) (registry.Entry, error) {
	return registry.Entry{}, errNoRegistry
}

type peer struct {
	Name        string          `json:"swarm_name"`
	BaseURL     string          `json:"base_url"`
	Version     string          `json:"version"`
	LastSeen    *string         `json:"last_seen"`
	Active      bool            `json:"is_active"`
	Latency     *float64        `json:"latency"`
	Description string          `json:"swarm_description"`
	Keywords    []string        `json:"keywords"`
	Metadata    json.RawMessage `json:"metadata"`
}

func newPeer(e registry.Entry) peer {
	return peer{
		Name: e.Name, BaseURL: e.BaseURL, Version: e.Version, LastSeen: stampOrNull(e.LastSeen), Active: e.Active, Latency: e.Latency,
		Description: e.Description, Keywords: list(e.Keywords), Metadata: e.Metadata,
	}
}

func stampOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := stamp(t)
	return &text
}

// maxListed bounds the entries of GET /swarms, in bytes: everybody may ask, and
// others have written most of it.
const maxListed = 256 << 10

// swarms is GET /swarms: what others may know of, the local swarm itself first
// when it is public. The list ends before the entry that is too much.
func (c *call) swarms() error {
	def, err := c.definition()
	if err != nil {
		return err
	}
	var known []peer
	if def.Public {
		known = append(known, newPeer(registry.Entry{
			Name: def.Name, BaseURL: c.baseURL(), Version: protocol, LastSeen: c.h.opt.Now(), Active: true,
			Description: def.Description, Keywords: def.Keywords,
		}))
	}
	for _, e := range c.h.opt.Registry.Entries() {
		if e.Public {
			known = append(known, newPeer(e))
		}
	}
	listed, size := []json.RawMessage{}, 0
	for _, p := range known {
		text := encode(p)
		if size += len(text); size > maxListed {
			break
		}
		listed = append(listed, text)
	}
	return c.reply(struct {
		Swarms []json.RawMessage `json:"swarms"`
	}{listed})
}

// registerSwarm is POST /swarms and POST /swarms/register. The registry
// is the host's, so it is for the admins of the tenant that the host shows.
func (c *call) registerSwarm() error {
	if err := c.ofTheHost("the swarms this host knows are"); err != nil {
		return err
	}
	q, err := parseRegistration(c.body, c.h.opt.MaxDepth)
	if err != nil {
		return err
	}
	q.Operator = c.w.who.Role == auth.Operator
	e, err := c.h.opt.Registry.Register(c.ctx(), q)
	if err := c.did("swarm.register", q.Name+" "+q.BaseURL, err); err != nil {
		return err
	}
	c.h.opt.Logger.Info("swarm registered", "swarm", e.Name, "base_url", e.BaseURL, "active", e.Active, "by", c.w.who.String())
	return c.reply(struct {
		Status string `json:"status"`
		Name   string `json:"swarm_name"`
		Token  string `json:"auth_token_ref,omitempty"`
	}{"registered", e.Name, e.TokenRef})
}

// parseRegistration reads the body of POST /swarms.
func parseRegistration(body []byte, depth int) (q registry.Request, err error) {
	o, err := parseObject(body, depth)
	if err != nil {
		return q, err
	}
	err = o.texts(goesTo{"swarm_name", &q.Name}, goesTo{"name", &q.Name}, goesTo{"base_url", &q.BaseURL},
		goesTo{"auth_token", &q.Token})
	if err != nil {
		return q, err
	}
	if q.Name == "" || q.BaseURL == "" {
		return q, badRequest("name and base_url are required")
	}
	q.Volatile = true
	if _, given := o.get("volatile"); given {
		if q.Volatile, err = o.flag("volatile"); err != nil {
			return q, err
		}
	}
	if _, err := o.object("metadata"); err != nil {
		return q, err
	}
	if raw, given := o.get("metadata"); given {
		q.Metadata = raw
	}
	return q, nil
}

// ofTheHost refuses those whose tenant is not the one that the host shows.
func (c *call) ofTheHost(what string) error {
	if c.w.who.Tenant != c.h.opt.Tenant {
		return unauthorized("invalid role: " + what + " for admins of tenant '" + c.h.opt.Tenant + "' to change")
	}
	return nil
}

package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/peer/registry"
)

// Registry holds the swarms that the host knows. Its methods are safe for
// concurrent use. Refusals are *swarm.Refusal; callers see their text.
type Registry interface {
	// Entries lists the known swarms in their order.
	Entries() []registry.Entry
	// Register queries a swarm and adds it; a lasting entry is durable on return.
	Register(ctx context.Context, q registry.Request) (registry.Entry, error)
	// Remove removes a registered swarm and returns its entry; that is durable on
	// return.
	Remove(ctx context.Context, name string, operator bool) (registry.Entry, error)
	// Ping checks a swarm's health now. A swarm that is down is no error.
	Ping(ctx context.Context, name string) (registry.Entry, error)
}

var _ Registry = (*registry.Registry)(nil)

// noRegistry holds no swarms.
type noRegistry struct{}

var errNoRegistry = newFault(http.StatusServiceUnavailable, "swarm registry not available")

func (noRegistry) Entries() []registry.Entry { return nil }
func (noRegistry) Register(context.Context, registry.Request) (registry.Entry, error) {
	return registry.Entry{}, errNoRegistry
}
func (noRegistry) Remove(context.Context, string, bool) (registry.Entry, error) {
	return registry.Entry{}, errNoRegistry
}
func (noRegistry) Ping(context.Context, string) (registry.Entry, error) {
	return registry.Entry{}, errNoRegistry
}

type peerRecord struct {
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

func newPeerRecord(e registry.Entry) peerRecord {
	return peerRecord{
		Name: e.Name, BaseURL: e.BaseURL, Version: e.Version, LastSeen: formatTimeOrNull(e.LastSeen), Active: e.Active, Latency: e.Latency,
		Description: e.Description, Keywords: nonNil(e.Keywords), Metadata: e.Metadata,
	}
}

func formatTimeOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := formatTime(t)
	return &text
}

// maxListed bounds the entries of GET /swarms in bytes: the route is public, and
// other swarms have written most of it.
const maxListed = 256 << 10

// swarms is GET /swarms: the public swarms, the local one first if it is public
// . The list ends before the entry that exceeds maxListed.
func (c *call) swarms() error {
	def, err := c.definition()
	if err != nil {
		return err
	}
	var known []peerRecord
	if def.Public {
		known = append(known, newPeerRecord(registry.Entry{
			Name: def.Name, BaseURL: c.baseURL(), Version: protocolVersion, LastSeen: c.h.opt.Now(), Active: true,
			Description: def.Description, Keywords: def.Keywords,
		}))
	}
	for _, e := range c.h.opt.Registry.Entries() {
		if e.Public {
			known = append(known, newPeerRecord(e))
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
// belongs to the host, so only admins of the host's tenant change it.
func (c *call) registerSwarm() error {
	if err := c.requireHostTenant("the swarms this host knows are"); err != nil {
		return err
	}
	o, err := c.bodyObject()
	if err != nil {
		return err
	}
	q, err := readRegistration(o)
	if err != nil {
		return err
	}
	q.Operator = c.w.who.Role == auth.Operator
	e, err := c.h.opt.Registry.Register(c.ctx(), q)
	if err := c.auditAct("swarm.register", q.Name+" "+withoutUserinfo(q.BaseURL), err); err != nil {
		return err
	}
	c.h.opt.Logger.Info("swarm registered", "swarm", e.Name, "base_url", e.BaseURL, "active", e.Active, "by", c.w.who.String())
	return c.reply(struct {
		Status string `json:"status"`
		Name   string `json:"swarm_name"`
		Token  string `json:"auth_token_ref,omitempty"`
	}{"registered", e.Name, e.TokenRef})
}

// withoutUserinfo takes off what may be a name and a password: the registry refuses a URL with
// them, and what is refused is in the audit log and the feed.
func withoutUserinfo(url string) string {
	at := strings.LastIndex(url, "@")
	if at < 0 {
		return url
	}
	scheme, _, ok := strings.Cut(url[:at], "://")
	if !ok {
		return url[at+1:]
	}
	return scheme + "://" + url[at+1:]
}

// readRegistration reads the body of POST /swarms.
func readRegistration(o *object) (q registry.Request, err error) {
	err = o.readTexts(textField{"swarm_name", &q.Name}, textField{"name", &q.Name}, textField{"base_url", &q.BaseURL},
		textField{"auth_token", &q.Token})
	if err != nil {
		return q, err
	}
	if q.Name == "" || q.BaseURL == "" {
		return q, badRequest("name and base_url are required")
	}
	q.Volatile = true
	if _, given := o.get("volatile"); given {
		if q.Volatile, err = o.boolean("volatile"); err != nil {
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

// requireHostTenant refuses callers of another tenant than the host's.
func (c *call) requireHostTenant(what string) error {
	if c.w.who.Tenant != c.h.opt.Tenant {
		return forbidden("invalid role: " + what + " for admins of tenant '" + c.h.opt.Tenant + "' to change")
	}
	return nil
}

package rest

import (
	"strings"

	"skep/host/internal/api/auth"
	"skep/host/internal/peer/registry"
)

// adminPeer is a known swarm with the fields for admins.
type adminPeer struct {
	peerRecord
	Entrypoint string `json:"entrypoint"`
	// Since is the time of the last change of is_active, null for a swarm that
	// was never checked. LastError is why it is false.
	Since      *string `json:"since"`
	LastError  *string `json:"error"`
	Public     bool    `json:"public"`
	Volatile   bool    `json:"volatile"`
	Fixed      bool    `json:"fixed"`
	Discovered bool    `json:"discovered"`
	// DeliveryError is why mail for the swarm cannot be sent.
	DeliveryError *string `json:"letters_error"`
}

func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// listPeers is GET /skep/v1/peers: all known swarms.
func (c *call) listPeers() error {
	list := []adminPeer{}
	for _, e := range c.h.opt.Registry.Entries() {
		list = append(list, adminPeer{
			newPeerRecord(e), e.Entrypoint, formatTimeOrNull(e.Since), textOrNull(e.LastError), e.Public, e.Volatile, e.Fixed, e.Discovered, c.deliveryError(e),
		})
	}
	return c.reply(struct {
		Peers []adminPeer `json:"peers"`
	}{list})
}

// deliveryError is null for a discovered swarm: it takes no mail.
func (c *call) deliveryError(e registry.Entry) *string {
	if c.h.opt.CheckPeer == nil || e.Discovered {
		return nil
	}
	if err := c.h.opt.CheckPeer(e.Name); err != nil {
		return textOrNull(err.Error())
	}
	return nil
}

// pingPeer is POST /skep/v1/peers/{name}/ping. It changes no more than the next
// health check would, so it is not audited.
func (c *call) pingPeer() error {
	if err := c.requireHostTenant("the swarms this host knows are"); err != nil {
		return err
	}
	e, err := c.h.opt.Registry.Ping(c.ctx(), c.r.PathValue("name"))
	if err != nil {
		return err
	}
	return c.reply(struct {
		Name     string   `json:"swarm_name"`
		Active   bool     `json:"active"`
		Latency  *float64 `json:"latency"`
		Version  string   `json:"version"`
		LastSeen *string  `json:"last_seen"`
		Trouble  *string  `json:"error"`
	}{e.Name, e.Active, e.Latency, e.Version, formatTimeOrNull(e.LastSeen), textOrNull(e.LastError)})
}

// removePeer is DELETE /skep/v1/peers/{name}.
func (c *call) removePeer() error {
	if err := c.requireHostTenant("the swarms this host knows are"); err != nil {
		return err
	}
	name := c.r.PathValue("name")
	e, err := c.h.opt.Registry.Remove(c.ctx(), name, c.w.who.Role == auth.Operator)
	if err := c.auditAct("swarm.remove", strings.TrimSpace(name+" "+e.BaseURL), err); err != nil {
		return err
	}
	return c.reply(struct {
		Status string `json:"status"`
		Name   string `json:"swarm_name"`
	}{"removed", e.Name})
}

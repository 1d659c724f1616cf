package rest

import (
	"strings"

	"skep/host/internal/auth"
	"skep/host/internal/registry"
)

// knownPeer is what only admins see of a swarm.
type knownPeer struct {
	peer
	Entrypoint string `json:"entrypoint"`
	// Since is when is_active became what it is, null for a swarm that was never
	// asked; Trouble is why it is false.
	Since    *string `json:"since"`
	Trouble  *string `json:"error"`
	Public   bool    `json:"public"`
	Volatile bool    `json:"volatile"`
	Fixed    bool    `json:"fixed"`
	Found    bool    `json:"discovered"`
	// Letters is why mail for it cannot leave.
	Letters *string `json:"letters_error"`
}

func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// listPeers is GET /skep/v1/peers: all that are known, with what only admins see.
func (c *call) listPeers() error {
	list := []knownPeer{}
	for _, e := range c.h.opt.Registry.Entries() {
		list = append(list, knownPeer{
			newPeer(e), e.Entrypoint, stampOrNull(e.Since), textOrNull(e.Trouble), e.Public, e.Volatile, e.Fixed, e.Found, c.lettersError(e),
		})
	}
	return c.reply(struct {
		Peers []knownPeer `json:"peers"`
	}{list})
}

// lettersError is null for a swarm that nobody has registered: it takes no mail.
func (c *call) lettersError(e registry.Entry) *string {
	if c.h.opt.Letters == nil || e.Found {
		return nil
	}
	if err := c.h.opt.Letters(e.Name); err != nil {
		return textOrNull(err.Error())
	}
	return nil
}

// pingPeer is POST /skep/v1/peers/{name}/ping. What changes by it is no more than
// the next look at the swarm would change, so it is not in the audit log.
func (c *call) pingPeer() error {
	if err := c.ofTheHost("the swarms this host knows are"); err != nil {
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
	}{e.Name, e.Active, e.Latency, e.Version, stampOrNull(e.LastSeen), textOrNull(e.Trouble)})
}

// removePeer is DELETE /skep/v1/peers/{name}.
func (c *call) removePeer() error {
	if err := c.ofTheHost("the swarms this host knows are"); err != nil {
		return err
	}
	name := c.r.PathValue("name")
	e, err := c.h.opt.Registry.Remove(name, c.w.who.Role == auth.Operator)
	if err := c.did("swarm.remove", strings.TrimSpace(name+" "+e.BaseURL), err); err != nil {
		return err
	}
	return c.reply(struct {
		Status string `json:"status"`
		Name   string `json:"swarm_name"`
	}{"removed", e.Name})
}

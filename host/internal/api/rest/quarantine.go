package rest

// releaseAgent is POST /skep/v1/agents/{agent}/release. An operator may name any
// tenant.
func (c *call) releaseAgent() error {
	agent := c.r.PathValue("agent")
	tenant, err := c.requestedTenant()
	if err != nil {
		return err
	}
	err = c.h.quarantine.ReleaseAgent(tenant, c.h.opt.Swarm, agent)
	if err := c.auditAct("agent.release", tenant+"/"+agent, err); err != nil {
		return err
	}
	return c.reply(struct {
		Tenant   string `json:"tenant"`
		Agent    string `json:"agent"`
		Released bool   `json:"released"`
	}{tenant, agent, true})
}

package rest

// releaseAgent is POST /skep/v1/agents/{agent}/release. An operator runs the host
// for all tenants, so it may name any.
func (c *call) releaseAgent() error {
	agent := c.r.PathValue("agent")
	tenant, err := c.tenantOf()
	if err != nil {
		return err
	}
	err = c.h.rt.ReleaseAgent(tenant, c.h.opt.Swarm, agent)
	if err := c.did("agent.release", tenant+"/"+agent, err); err != nil {
		return err
	}
	return c.reply(struct {
		Tenant   string `json:"tenant"`
		Agent    string `json:"agent"`
		Released bool   `json:"released"`
	}{tenant, agent, true})
}

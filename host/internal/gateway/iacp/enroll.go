package iacp

import (
	"encoding/json"
	"slices"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
	"skep/host/internal/gateway/wire"
)

// enrolment is an agent of ours that a partner was told of: the id of the message that
// did, and what it had.
type enrolment struct{ message, info string }

// enroll registers our exposed agents at a partner that was called, and tells it what a
// reload has changed (I-036, I-054).
func (c *conn) enroll(p gateway.Partner) {
	tick := time.NewTicker(lookTime)
	defer tick.Stop()
	for {
		list := c.g.listed(p.Caller(), criteria{Format: detailed})
		if !isHub(p) { // which is told of the members of others, too
			list = slices.DeleteFunc(list, func(a agentInfo) bool { return a.member })
		}
		c.enrollChanged(list)
		select {
		case <-tick.C:
		case <-c.ctx.Done():
			return
		}
	}
}

// enrollChanged registers agents that are new or have changed, and takes others back.
func (c *conn) enrollChanged(list []agentInfo) {
	for id := range c.enrolled {
		if !slices.ContainsFunc(list, func(a agentInfo) bool { return a.ID == id }) {
			_ = c.tell(message.AgentUnregister, message.Message{}, map[string]any{"agent_id": id})
			c.setEnrolment(id, nil)
		}
	}
	for _, a := range list {
		a.Load = nil // it changes with each message
		info := string(wire.MustEncode(a))
		if c.enrolled[a.ID].info == info {
			continue
		}
		m := message.New(message.AgentRegister, a.ID, map[string]any{
			"agent_info": a,
			"network_info": map[string]any{
				"max_connections": c.g.Sessions, "preferred_protocols": []string{"iacp/" + message.Version}, "authentication_methods": methods,
			},
		})
		c.setEnrolment(a.ID, &enrolment{m.ID, info})
		if c.write(m) != nil {
			return
		}
	}
}

// setEnrolment is called by enroll alone, which may read enrolled without the lock.
func (c *conn) setEnrolment(agent string, e *enrolment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e == nil {
		delete(c.enrolled, agent)
		return
	}
	c.enrolled[agent] = *e
}

// refusedEnrolment returns the agent whose registration a message is about, empty for none.
func (c *conn) refusedEnrolment(id string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for agent, e := range c.enrolled {
		if e.message == id {
			return agent
		}
	}
	return ""
}

// noteRegistered remembers the agents that a partner has, by its answer to a registration of
// ours.
func (c *conn) noteRegistered(caller gateway.Caller, m message.Message) {
	var p struct {
		Agents []agentInfo `json:"agents"`
	}
	_ = json.Unmarshal(m.Payload, &p) // its agents speak for themselves
	for _, a := range p.Agents {
		if c.g.checkSender(caller, a.ID) == nil && c.g.conns.speaks(c, a.ID) {
			c.sendWaiting(caller, a.ID)
		}
	}
}

package iacp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
)

// maxRegistration bounds a registration, which is kept while its connection lasts, in bytes.
const maxRegistration = 16 << 10

// register remembers an agent of the peer (I-036), and tells it who is here (I-054).
func (c *conn) register(caller gateway.Caller, m message.Message) {
	var p struct {
		Info agentInfo `json:"agent_info"`
	}
	err := json.Unmarshal(m.Payload, &p)
	if len(m.Payload) > maxRegistration {
		err = &fault{code: codeInvalid, reason: reasonTooLarge, text: fmt.Sprintf("a registration has at most %d bytes, and this one has %d", maxRegistration, len(m.Payload))}
	} else if err != nil || p.Info.ID == "" {
		err = &fault{code: codeInvalid, text: "agent_info.agent_id must be the agent that registers", expected: "agent_info with agent_id"}
	} else if !message.IsAgent(p.Info.ID) {
		err = &fault{code: codeInvalid, text: "agent_info.agent_id must be " + message.AgentForm + " that can be printed", expected: message.AgentForm}
	} else if err = c.g.checkSender(caller, p.Info.ID); err == nil {
		err = c.g.checkCapabilities(caller, p.Info)
	}
	if err == nil {
		err = c.registerAgent(caller, m, p.Info)
	}
	c.g.record(caller, m, m.Payload, gateway.Exchange{}, err)
	if err != nil {
		c.refuse(m, err)
		return
	}
	c.sendWaiting(caller, p.Info.ID)
}

// registerAgent registers an agent and answers. It keeps other writers out meanwhile, so that the
// answer comes before the messages that wait for the agent.
func (c *conn) registerAgent(caller gateway.Caller, m message.Message, a agentInfo) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.g.conns.register(c, a); err != nil {
		return err
	}
	answer := map[string]any{"status": "registered", "agent_id": a.ID, "agents": c.g.listed(caller, criteria{})}
	if text, err := c.compose(message.AgentRegisterResponse, m, answer).Encode(); err == nil {
		_ = c.writeLocked(text)
	}
	return nil
}

// unregister forgets an agent of the peer.
func (c *conn) unregister(caller gateway.Caller, m message.Message) {
	var p struct {
		ID string `json:"agent_id"`
	}
	_ = json.Unmarshal(m.Payload, &p) // without an agent it is the sender
	id := cmp.Or(p.ID, m.Sender.ID)
	err := c.g.checkSender(caller, id)
	c.g.record(caller, m, m.Payload, gateway.Exchange{}, err)
	if err != nil {
		c.refuse(m, err)
		return
	}
	c.g.conns.leaves(c, id)
	c.acknowledge(m)
}

// detailed is a response_format.
const detailed = "detailed"

// criteria are in the payload of an agent_discover (I-037).
type criteria struct {
	Type     string `json:"discovery_type"`
	Format   string `json:"response_format"`
	Criteria struct {
		Capabilities []string `json:"capabilities"`
		AgentType    string   `json:"agent_type"`
		Load         *float64 `json:"load_threshold"`
	} `json:"criteria"`
}

// discover lists the agents that the peer may see.
func (c *conn) discover(caller gateway.Caller, m message.Message) {
	var want criteria
	if err := json.Unmarshal(m.Payload, &want); err != nil {
		c.refuse(m, &fault{code: codeInvalid, text: "the criteria cannot be read", expected: "discovery_type and criteria"})
		return
	}
	list := c.g.listed(caller, want)
	_ = c.tell(message.AgentDiscoverResponse, m, map[string]any{"agents": list, "total": len(list)})
}

// agentInfo is an agent as a registration and a discovery have it.
type agentInfo struct {
	ID           string   `json:"agent_id"`
	Name         string   `json:"agent_name"`
	Type         string   `json:"agent_type"`
	Capabilities []string `json:"capabilities"`
	Version      string   `json:"version,omitempty"`
	Description  string   `json:"description,omitempty"`
	Tools        []string `json:"supported_tools,omitempty"`
	// ReadTools are the members of Tools that change nothing.
	ReadTools []string `json:"read_tools,omitempty"`
	// Load is how much of what it can do it does, nil where that is not known.
	Load *float64 `json:"load,omitempty"`
	// tags are of capabilities; member is set for an agent of a partner, events are what it wants.
	tags, events []string
	member       bool
}

// listed are the exposed agents and the registered members that fit.
func (g *Gateway) listed(c gateway.Caller, want criteria) []agentInfo {
	list := []agentInfo{}
	for _, a := range g.Runtime.ExposedAgents(c) {
		info := infoOfAgent(a)
		info.ID = g.agentID(c, a.Swarm, a.Name)
		load := float64(g.loads.of(c.Principal.Tenant, a.Swarm, a.Name)) / float64(g.Asks)
		info.Load = &load
		list = append(list, info)
	}
	list = append(list, g.members(c)...)
	group := message.Recipient{Group: &message.Group{Capabilities: want.Criteria.Capabilities}}
	list = slices.DeleteFunc(list, func(a agentInfo) bool {
		most := want.Criteria.Load
		return want.Type == "by_capability" && len(want.Criteria.Capabilities) > 0 && !isMember(a, &group) ||
			want.Type == "by_type" && a.Type != want.Criteria.AgentType || most != nil && a.Load != nil && *a.Load > *most
	})
	for i := range list {
		if want.Format != detailed {
			list[i].Version, list[i].Description, list[i].Tools, list[i].ReadTools, list[i].Load = "", "", nil, nil, nil
		}
	}
	return list
}

// agentID is the id of an exposed agent: its name, or NAME@SWARM where agents of several swarms
// have the name. The document wants it to be unique (§2.1).
func (g *Gateway) agentID(c gateway.Caller, swarm, name string) string {
	same := func(a gateway.ExposedAgent) bool { return a.Name == name && a.Swarm != swarm }
	if slices.ContainsFunc(g.Runtime.ExposedAgents(c), same) {
		return name + "@" + swarm
	}
	return name
}

// infoOfAgent is an exposed agent as discovery has it.
func infoOfAgent(a gateway.ExposedAgent) agentInfo {
	info := agentInfo{ID: a.Name, Name: a.Name, Type: "specialist", Capabilities: []string{}, Version: a.Version, Description: a.Description}
	if a.Entrypoint {
		info.Type = "generalist"
	}
	for _, capability := range a.Capabilities {
		info.Capabilities, info.tags = append(info.Capabilities, capability.ID), append(info.tags, capability.Tags...)
		if capability.Action {
			info.Tools = append(info.Tools, capability.ID)
		}
		if capability.ReadOnly {
			info.ReadTools = append(info.ReadTools, capability.ID)
		}
	}
	return info
}

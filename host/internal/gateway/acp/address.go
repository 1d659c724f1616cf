package acp

import (
	"net/url"
	"strings"

	"skep/host/internal/gateway"
)

// agentOf returns the exposed agent that a receiver names: NAME, NAME@SWARM or
// agent://HOST/SWARM/NAME. An agent that the caller may not see is as unknown as any.
func (g *Gateway) agentOf(c gateway.Caller, receiver string) (gateway.ExposedAgent, error) {
	name, swarm, ok := g.parseReceiver(receiver)
	for _, a := range g.Runtime.ExposedAgents(c) {
		if ok && a.Name == name && (a.Swarm == swarm || swarm == "") {
			return a, nil
		}
	}
	return gateway.ExposedAgent{}, &fault{code: codeReceiver, text: "there is no such receiver", status: 404}
}

// parseReceiver returns the parts of a receiver; swarm is empty for a bare name.
func (g *Gateway) parseReceiver(receiver string) (name, swarm string, ok bool) {
	if rest, isURI := strings.CutPrefix(receiver, "agent://"); isURI {
		host, path, _ := strings.Cut(rest, "/")
		swarm, name, _ := strings.Cut(path, "/")
		if g.host != "" && !strings.EqualFold(host, g.host) {
			return "", "", false
		}
		swarm, errSwarm := url.PathUnescape(swarm)
		name, errName := url.PathUnescape(name)
		return name, swarm, errSwarm == nil && errName == nil && swarm != ""
	}
	if at := strings.LastIndexByte(receiver, '@'); at >= 0 {
		return receiver[:at], receiver[at+1:], at+1 < len(receiver)
	}
	return receiver, "", true
}

// checkSender refuses a sender that is not the caller's. A realm without ids has
// one agent, which has its name.
func (g *Gateway) checkSender(c gateway.Caller, sender string) error {
	refused := &fault{code: codeForbidden, text: "the sender is not an agent of the caller", status: 403}
	if c.IsUser() {
		refused.text = "ACP is for agents: show a credential of role agent"
		return refused
	}
	p, _ := g.Runtime.Partner(c.Realm)
	if ownsAgent(p, c, sender) {
		return nil
	}
	return refused
}

// ownsAgent reports whether a foreign agent is the caller's; p is the partner that he is,
// if he is one.
func ownsAgent(p gateway.Partner, c gateway.Caller, agent string) bool {
	if len(p.IDs) > 0 {
		return p.Owns(agent)
	}
	return agent == c.Principal.PeerSwarm()
}

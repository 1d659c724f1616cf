package acp

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"skep/host/internal/gateway"
)

// agentOf returns the exposed agent that a receiver names: NAME, NAME@SWARM or
// agent://HOST/SWARM/NAME. An agent that the caller may not see is as unknown as any.
func (g *Gateway) agentOf(c gateway.Caller, receiver string) (gateway.ExposedAgent, error) {
	name, swarm, ok := g.parseReceiver(receiver)
	visible := g.Runtime.ExposedAgents(c)
	for _, a := range visible {
		if ok && a.Name == name && (a.Swarm == swarm || swarm == "") {
			return a, nil
		}
	}
	return gateway.ExposedAgent{}, &fault{
		code: codeReceiver, text: fmt.Sprintf("there is no receiver %q", receiver) + gateway.SuggestAgent(receiver, visible), status: http.StatusNotFound,
	}
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
	refused := &fault{code: codeForbidden, text: needsAgent, status: http.StatusForbidden}
	if c.IsUser() {
		return refused
	}
	p, _ := g.Runtime.Partner(c.Realm)
	if ownsAgent(p, c, sender) {
		return nil
	}
	refused.text = fmt.Sprintf("%q is not an agent of %q", sender, c.Principal.PeerSwarm())
	switch {
	case len(p.IDs) > 0:
		refused.text += ", whose agents are in ids of [gateways.acp.partners." + p.Name + "]"
	case p.Name != "":
		refused.text += ", whose only agent has its name; ids of [gateways.acp.partners." + p.Name + "] makes others its agents"
	}
	return refused
}

// needsAgent refuses a user.
const needsAgent = "ACP is for agents: show a credential of role agent"

// ownsAgent reports whether a foreign agent is the caller's; p is the partner that he is,
// if he is one.
func ownsAgent(p gateway.Partner, c gateway.Caller, agent string) bool {
	if len(p.IDs) > 0 {
		return p.Owns(agent)
	}
	return agent == c.Principal.PeerSwarm()
}

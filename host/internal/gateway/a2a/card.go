package a2a

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"skep/host/internal/gateway"
)

// bearer is the name of the one security scheme in cards.
const bearer a2a.SecuritySchemeName = "bearer"

// serveHostCard serves the card of the first entrypoint.
func (g *Gateway) serveHostCard(w http.ResponseWriter, r *http.Request) {
	g.writeCard(w, r, g.entrypoint(g.reader(r)))
}

// serveCard serves the card of one agent.
func (g *Gateway) serveCard(w http.ResponseWriter, r *http.Request, swarm, name string) {
	g.writeCard(w, r, g.agent(g.reader(r), swarm, name))
}

// reader is who reads a card. A request without a credential may; one with a credential
// gets what its caller sees.
func (g *Gateway) reader(r *http.Request) gateway.Caller {
	if r.Header.Get("Authorization") != "" {
		if c, err := g.Runtime.Identify(r); err == nil {
			return c
		}
	}
	return gateway.Caller{}
}

func (g *Gateway) writeCard(w http.ResponseWriter, r *http.Request, agent *gateway.ExposedAgent) {
	if agent == nil {
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	text, err := g.cardText(g.base(r), *agent)
	if err != nil {
		g.Log.Error("a2a: a card cannot be made", "agent", agentPath(*agent), "error", err)
		refuse(w, http.StatusInternalServerError, "the card cannot be made")
		return
	}
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("Cache-Control", "max-age=60")
	w.Header().Set("Vary", "Authorization")
	_, _ = w.Write(text)
}

// cardText returns a card as JSON. With version 0.3 it has the members of both versions,
// for readers of either.
func (g *Gateway) cardText(base string, agent gateway.ExposedAgent) ([]byte, error) {
	card, err := g.card(base, agent)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(card)
	if err != nil || !g.V03 {
		return text, err
	}
	producer := a2av0.NewStaticAgentCardProducer(card).(a2asrv.AgentCardJSONProducer)
	old, err := producer.CardJSON(context.Background())
	if err != nil {
		return nil, err
	}
	var both, members map[string]any
	if err := errors.Join(json.Unmarshal(text, &both), json.Unmarshal(old, &members)); err != nil {
		return nil, err
	}
	addMembers(both, members)
	return json.Marshal(both)
}

// addMembers adds what an object lacks, in its objects too.
func addMembers(to, from map[string]any) {
	for name, value := range from {
		if _, ok := to[name]; !ok {
			to[name] = value
			continue
		}
		inner, _ := to[name].(map[string]any)
		more, _ := value.(map[string]any)
		if inner != nil {
			addMembers(inner, more)
		}
	}
}

// base is the address of this host in cards.
func (g *Gateway) base(r *http.Request) string {
	switch {
	case g.PublicURL != "":
		return g.PublicURL
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// agentPath is SWARM/AGENT: an agent's address below prefix, and its tenant over gRPC.
func agentPath(a gateway.ExposedAgent) string {
	return url.PathEscape(a.Swarm) + "/" + url.PathEscape(a.Name)
}

// card returns an agent's card, signed if there is a key.
func (g *Gateway) card(base string, agent gateway.ExposedAgent) (*a2a.AgentCard, error) {
	card := &a2a.AgentCard{
		Name: agent.Name, Description: cmp.Or(agent.Description, agent.Name), Version: cmp.Or(agent.Version, "0"),
		SupportedInterfaces: g.interfaces(base, agent),
		Capabilities:        a2a.AgentCapabilities{Streaming: true, PushNotifications: g.pushes(), ExtendedAgentCard: true},
		DefaultInputModes:   outputModes, DefaultOutputModes: outputModes,
		Skills:               skills(agent),
		SecuritySchemes:      a2a.NamedSecuritySchemes{bearer: a2a.HTTPAuthSecurityScheme{Scheme: "Bearer"}},
		SecurityRequirements: a2a.SecurityRequirementsOptions{{bearer: a2a.SecuritySchemeScopes{}}},
	}
	if g.CardKey == nil {
		return card, nil
	}
	signature, err := g.CardKey.sign(card, base+prefix+keysPath)
	card.Signatures = []a2a.AgentCardSignature{signature}
	return card, err
}

// interfaces lists where an agent is served, the best first. gRPC is served over TLS only.
func (g *Gateway) interfaces(base string, agent gateway.ExposedAgent) []*a2a.AgentInterface {
	at := base + prefix + agentPath(agent)
	list := []*a2a.AgentInterface{
		{URL: at, ProtocolBinding: a2a.TransportProtocolJSONRPC, ProtocolVersion: a2a.Version},
		{URL: at, ProtocolBinding: a2a.TransportProtocolHTTPJSON, ProtocolVersion: a2a.Version},
	}
	if authority := grpcAuthority(base); authority != "" {
		list = append(list, &a2a.AgentInterface{URL: authority, ProtocolBinding: a2a.TransportProtocolGRPC, ProtocolVersion: a2a.Version, Tenant: agentPath(agent)})
	}
	if g.V03 {
		list = append(list, &a2a.AgentInterface{URL: at, ProtocolBinding: a2a.TransportProtocolJSONRPC, ProtocolVersion: a2av0.Version})
	}
	return list
}

// grpcAuthority returns HOST:PORT of an https address, "" for others.
func grpcAuthority(base string) string {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" {
		return ""
	}
	if u.Port() == "" {
		return u.Host + ":443"
	}
	return u.Host
}

// skills are the capabilities of an agent, or else the agent as one skill.
func skills(agent gateway.ExposedAgent) []a2a.AgentSkill {
	if len(agent.Capabilities) == 0 {
		return []a2a.AgentSkill{{ID: agent.Name, Name: agent.Name, Description: cmp.Or(agent.Description, agent.Name), Tags: []string{"agent"}}}
	}
	list := make([]a2a.AgentSkill, len(agent.Capabilities))
	for i, c := range agent.Capabilities {
		tags := c.Tags
		if len(tags) == 0 {
			tags = []string{strings.ToLower(c.ID)}
		}
		list[i] = a2a.AgentSkill{ID: c.ID, Name: c.ID, Description: cmp.Or(c.Description, c.ID), Tags: tags, Examples: c.Examples}
	}
	return list
}

package amp

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
)

// healthBody is the state of the host or of an agent (M-092).
type healthBody struct {
	Status       string      `json:"status"`
	Agent        *identity   `json:"agent,omitempty"`
	Protocol     string      `json:"protocol_version"`
	Capabilities []described `json:"capabilities,omitempty"`
	Load         *int        `json:"load,omitempty"` // messages in work
	Timestamp    string      `json:"timestamp"`
}

// serveHealth serves whether the host takes messages, and to a caller with a credential
// what its agents can do.
func (g *Gateway) serveHealth(w http.ResponseWriter, r *http.Request) {
	out := replier{g: g, w: w, r: r, token: message.AMP}
	c, shown, err := g.identifyRequest(r)
	if err != nil {
		out.refuse(c, message.Received{}, err)
		return
	}
	writeHealth(w, g.hostHealth(c, shown))
}

// hostHealth is the state of the host, with what a caller may ask for if one is shown.
func (g *Gateway) hostHealth(c gateway.Caller, shown bool) healthBody {
	body := healthBody{Status: statusHealthy, Protocol: message.Version, Timestamp: timestamp(time.Now())}
	if shown {
		load := 0
		for _, a := range g.Runtime.ExposedAgents(c) {
			body.Capabilities = append(body.Capabilities, describe(a.Capabilities)...)
			load += g.measures.loadOf(c.Principal.Tenant, nameOf(a))
		}
		body.Capabilities, body.Load = append(body.Capabilities, describe([]gateway.Capability{mailTexts})...), &load
	}
	return body
}

// agentHealth is the state of an agent that a caller may see.
func (g *Gateway) agentHealth(c gateway.Caller, id string) (healthBody, error) {
	a, err := findAgent(g.Runtime.ExposedAgents(c), id)
	if err != nil {
		return healthBody{}, err
	}
	who, load := identityOf(a), g.measures.loadOf(c.Principal.Tenant, nameOf(a))
	return healthBody{Status: statusHealthy, Agent: &who, Protocol: message.Version, Capabilities: describe(capabilitiesOf(a)), Load: &load, Timestamp: timestamp(time.Now())}, nil
}

// agentHealthHandler serves the state of one agent, at ID/health below a path.
func (g *Gateway) agentHealthHandler(path string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := replier{g: g, w: w, r: r, token: tokenOfPath(path)}
		c, shown, err := g.identifyRequest(r)
		if err == nil && !shown {
			err = errNoCredential
		}
		id, isHealth := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, path), healthSuffix)
		var body healthBody
		if err == nil && isHealth {
			body, err = g.agentHealth(c, id)
		}
		switch {
		case err != nil:
			out.refuse(c, message.Received{}, err)
		case !isHealth:
			http.NotFound(w, r)
		default:
			writeHealth(w, body)
		}
	})
}

func writeHealth(w http.ResponseWriter, body healthBody) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(body) // the caller may have left
}

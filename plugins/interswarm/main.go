// Command interswarm owns the bundled actions that look at other swarms: whether
// one is there, how it is, and which others it knows. It must not know where they
// are; the operator grants that to each action.
package main

import (
	"cmp"
	"encoding/json"
	"strings"
	"unicode"

	skep "skep/sdk/go"
)

// Looker is the module. It has actions and no agent.
type Looker struct{}

var _ = skep.Run(skep.Descriptor{
	Name: "interswarm", Version: "1.0.0",
	Description: "Actions that look at other swarms.",
	Actions: []skep.ActionInfo{
		{Name: "ping_swarm", Description: "Answers pong when a swarm is there and running.", Parameters: url, Idempotent: true, Effect: "read"},
		{Name: "get_swarm_health", Description: "The health that a swarm tells of itself.", Parameters: url, Idempotent: true, Effect: "read"},
		{Name: "get_swarm_registry", Description: "The swarms that a swarm lists, as lines name@base_url.", Parameters: url, Idempotent: true, Effect: "read"},
	},
	Requests: []skep.Request{{Allow: "http", Reason: "to ask the swarms that it is told to look at"}},
}, Looker{})

func main() {}

var url = json.RawMessage(`{"type":"object","properties":{"url":{"type":"string","description":"the base URL of the swarm","minLength":1}},` +
	`"required":["url"],"additionalProperties":false}`)

// Turn refuses: the module has no agent.
func (Looker) Turn(*skep.Turn) error {
	return skep.Errorf(skep.Unsupported, "bundled:interswarm has actions and no agent; name it in [actions.ping_swarm] source")
}

// Action looks at a swarm.
func (Looker) Action(c *skep.ActionCall) (any, error) {
	var args struct{ URL string }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return nil, skep.Errorf(skep.Invalid, "%v", err)
	}
	base := strings.TrimRight(args.URL, "/")
	switch c.Name {
	case "ping_swarm":
		return ping(c.Host(), base)
	case "get_swarm_health":
		return health(c.Host(), base)
	case "get_swarm_registry":
		return registry(c.Host(), base)
	}
	return nil, skep.Errorf(skep.Unsupported, "no action %s", c.Name)
}

// ask reads one JSON object from a swarm.
func ask(t *skep.Turn, url string, into any) error {
	rsp, err := t.Fetch(skep.FetchRequest{URL: url, Headers: map[string]string{"Accept": "application/json"}})
	switch {
	case err != nil:
		return err
	case rsp.Status != 200:
		return skep.Errorf(skep.Upstream, "%s answers with status %d", url, rsp.Status)
	}
	if err := json.Unmarshal(rsp.Body, into); err != nil {
		return skep.Errorf(skep.Upstream, "%s does not answer as a swarm does", url)
	}
	return nil
}

func ping(t *skep.Turn, base string) (string, error) {
	var root struct {
		Name, Status string
		Swarm        struct{ Name, Entrypoint *string }
	}
	if err := ask(t, base+"/", &root); err != nil {
		return "", err
	}
	if root.Name != "mail" || root.Status != "running" || root.Swarm.Name == nil || root.Swarm.Entrypoint == nil {
		return "", skep.Errorf(skep.Upstream, "%s is not a swarm that runs", base)
	}
	return "pong", nil
}

func health(t *skep.Turn, base string) (string, error) {
	var h struct{ Status string }
	if err := ask(t, base+"/health", &h); err != nil {
		return "", err
	}
	if h.Status == "" {
		return "", skep.Errorf(skep.Upstream, "%s tells no health", base)
	}
	return h.Status, nil
}

func registry(t *skep.Turn, base string) (string, error) {
	var list struct {
		Swarms []struct {
			Name  string `json:"name"`
			Named string `json:"swarm_name"` // the same, as others write it
			Base  string `json:"base_url"`
		}
	}
	if err := ask(t, base+"/swarms", &list); err != nil {
		return "", err
	}
	var lines []string
	for _, s := range list.Swarms {
		line := cmp.Or(s.Named, s.Name) + "@" + s.Base
		if strings.IndexFunc(line, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) < 0 {
			lines = append(lines, line)
		} // else it would forge another line
	}
	return strings.Join(lines, "\n"), nil
}

package mcp

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/gateway"
)

// The addresses of resources: a task's messages and answers, an agent's description.
const (
	taskPrefix  = "mail://tasks/"
	agentPrefix = "mail://agents/"
)

func taskURI(task string) string { return taskPrefix + url.PathEscape(task) }

func agentURI(a gateway.ExposedAgent) string {
	return agentPrefix + url.PathEscape(a.Swarm) + "/" + url.PathEscape(a.Name)
}

// exchanges are the caller's newest at a path.
func (g *Gateway) exchanges(ctx context.Context, q *request) (list []gateway.Exchange, err error) {
	all, err := g.rt.List(ctx, q.caller, "", maxRecent)
	for _, x := range all {
		if q.swarm == "" || x.Task.Swarm == q.swarm {
			list = append(list, x)
		}
	}
	return list, g.hide(err)
}

// hide replaces an error that a caller may not see.
func (g *Gateway) hide(err error) error {
	switch {
	case err == nil:
		return nil
	case isRefusal(err):
		return &jsonrpc.Error{Code: codeInternal, Message: err.Error()}
	}
	g.opt.Logger.Error("a resource was not read", "gateway", "mcp", "err", err)
	return &jsonrpc.Error{Code: codeInternal, Message: "internal error"}
}

func (g *Gateway) listResources(ctx context.Context, q *request) (*mcp.ListResourcesResult, error) {
	list, err := g.exchanges(ctx, q)
	if err != nil {
		return nil, err
	}
	res := &mcp.ListResourcesResult{Resources: []*mcp.Resource{}, Cacheable: private}
	for _, a := range g.agents(q) {
		res.Resources = append(res.Resources, &mcp.Resource{URI: agentURI(a), Name: a.Name, Description: a.Description, MIMEType: "application/json"})
	}
	seen := map[string]bool{}
	for _, x := range list {
		if uri := taskURI(x.Conversation); !seen[uri] {
			seen[uri] = true
			res.Resources = append(res.Resources, &mcp.Resource{URI: uri, Name: x.Conversation, Description: "a task of " + x.Agent, MIMEType: "application/json"})
		}
	}
	return res, nil
}

func listTemplates() *mcp.ListResourceTemplatesResult {
	return &mcp.ListResourceTemplatesResult{Cacheable: private, ResourceTemplates: []*mcp.ResourceTemplate{
		{URITemplate: taskPrefix + "{task_id}", Name: "task", Description: "the messages and answers of a task", MIMEType: "application/json"},
		{URITemplate: agentPrefix + "{swarm}/{agent}", Name: "agent", Description: "what an agent can do", MIMEType: "application/json"},
	}}
}

func (g *Gateway) readResource(ctx context.Context, q *request, uri string) (*mcp.ReadResourceResult, error) {
	var content any
	switch {
	case strings.HasPrefix(uri, taskPrefix):
		messages, err := g.task(ctx, q, uri)
		if err != nil {
			return nil, err
		}
		if len(messages) > 0 {
			content = map[string]any{"messages": messages}
		}
	case strings.HasPrefix(uri, agentPrefix):
		for _, a := range g.agents(q) {
			if agentURI(a) == uri {
				content = agentCard(a)
			}
		}
	}
	if content == nil {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	return &mcp.ReadResourceResult{Cacheable: private, Contents: []*mcp.ResourceContents{
		{URI: uri, MIMEType: "application/json", Text: string(encode(content))},
	}}, nil
}

// message is one exchange of a task, as its resource has it.
type message struct {
	structured
	Accepted time.Time  `json:"accepted"`
	Answered *time.Time `json:"answered,omitempty"`
}

// task is what a task's newest messages have now, newest first.
func (g *Gateway) task(ctx context.Context, q *request, uri string) (messages []message, err error) {
	list, err := g.exchanges(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, x := range list {
		if taskURI(x.Conversation) != uri {
			continue
		}
		a, ok, err := g.rt.Look(ctx, x)
		if err != nil {
			return nil, g.hide(err)
		}
		m := message{structured: structured{TaskID: x.Conversation, Status: working, Agent: x.Agent}, Accepted: x.Accepted}
		if ok {
			m.Status, m.Subject, m.Text, m.Questions = statusOf(a.Outcome), a.Subject, a.Body, questionsOf(a)
			if !a.At.IsZero() {
				m.Answered = &a.At
			}
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// agentCard describes an agent.
func agentCard(a gateway.ExposedAgent) map[string]any {
	list := []map[string]any{}
	for _, c := range a.Capabilities {
		entry := map[string]any{"id": c.ID, "description": c.Description}
		for name, schema := range map[string]json.RawMessage{"input": c.Input, "output": c.Output} {
			if json.Valid(schema) {
				entry[name] = schema
			}
		}
		list = append(list, entry)
	}
	return map[string]any{"swarm": a.Swarm, "name": a.Name, "description": a.Description, "version": a.Version, "capabilities": list}
}

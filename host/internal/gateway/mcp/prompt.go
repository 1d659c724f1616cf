package mcp

import (
	"fmt"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// listPrompts has a prompt for each entrypoint, which lets a model ask it. Its arguments
// are the agent's, or the message.
func (g *Gateway) listPrompts(q *request) *mcp.ListPromptsResult {
	res := &mcp.ListPromptsResult{Prompts: []*mcp.Prompt{}, Cacheable: private}
	for _, t := range g.tools(q) {
		if !t.agent.Entrypoint {
			continue
		}
		p := &mcp.Prompt{Name: t.name, Description: "Ask " + t.agent.Name}
		for _, name := range slices.Sorted(maps.Keys(t.properties())) {
			p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: name})
		}
		if t.capability == nil {
			p.Arguments = []*mcp.PromptArgument{{Name: "message", Description: own["message"], Required: true}}
		}
		res.Prompts = append(res.Prompts, p)
	}
	return res
}

func (g *Gateway) getPrompt(q *request, p *mcp.GetPromptParams) (*mcp.GetPromptResult, error) {
	t, ok := g.tool(q, p.Name)
	if !ok || !t.agent.Entrypoint {
		return nil, &jsonrpc.Error{Code: codeInvalidParams, Message: fmt.Sprintf("unknown prompt %q", p.Name)}
	}
	text := fmt.Sprintf("Call the tool %s with these arguments and show me the answer:\n\n%s", t.name, encode(p.Arguments))
	return &mcp.GetPromptResult{
		Description: "Ask " + t.agent.Name,
		Messages:    []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}},
	}, nil
}

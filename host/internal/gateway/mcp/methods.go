package mcp

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/gateway"
)

// anyTool is the tool that the SDK has: it runs the one that a request names. Which tools
// there are differs between callers and from call to call.
const anyTool = "any"

// answerMethods answers what depends on the caller; the SDK does the rest.
func (g *Gateway) answerMethods(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		q := requestOf(req)
		if q == nil {
			return next(ctx, method, req)
		}
		q.read.Store(true)
		if method == "tools/call" {
			return g.answerCall(ctx, q, req.(*mcp.CallToolRequest), next)
		}
		res, err := g.answerMethod(ctx, q, method, req, next)
		g.rt.Record(gateway.Event{Caller: q.caller, Type: method, Text: q.body}.WithOutcome(false, err))
		return res, err
	}
}

// answerCall lets a call of a tool run, which has a line in the log by its message.
func (g *Gateway) answerCall(ctx context.Context, q *request, call *mcp.CallToolRequest, next mcp.MethodHandler) (mcp.Result, error) {
	q.tool, call.Params.Name = call.Params.Name, anyTool
	if q.session != nil {
		end, ok := q.session.beginCall()
		if !ok {
			err := refused(fmt.Sprintf("%d calls run in this session, and no more do; wait for one", maxCalls))
			g.recordCall(q, "", gateway.Exchange{}, err)
			return busy(err.Error()), nil
		}
		defer end()
	}
	return next(ctx, "tools/call", call)
}

// answerMethod answers any other method.
func (g *Gateway) answerMethod(ctx context.Context, q *request, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	switch method {
	case "initialize":
		res, err := next(ctx, method, req)
		if connected, ok := req.GetSession().(*mcp.ServerSession); ok && err == nil && q.slot != nil {
			q.session, err = q.slot.open(connected)
		}
		return res, err
	case "tools/list":
		return g.listTools(q), nil
	case "resources/list":
		return g.listResources(ctx, q)
	case "resources/templates/list":
		return listTemplates(), nil
	case "resources/read":
		return g.readResource(ctx, q, req.(*mcp.ReadResourceRequest).Params.URI)
	case "prompts/list":
		return g.listPrompts(q), nil
	case "prompts/get":
		return g.getPrompt(q, req.(*mcp.GetPromptRequest).Params)
	}
	return next(ctx, method, req)
}

// private are the cache fields of results: they are one caller's, and change at any time.
var private = mcp.Cacheable{CacheScope: "private"}

func (g *Gateway) listTools(q *request) *mcp.ListToolsResult {
	res := &mcp.ListToolsResult{Tools: []*mcp.Tool{}, Cacheable: private}
	for _, t := range g.tools(q) {
		res.Tools = append(res.Tools, t.describe())
	}
	return res
}

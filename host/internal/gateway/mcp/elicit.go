package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/gateway"
)

// declinedText is the answer of a person who gives none.
const declinedText = "The caller declined to answer."

// elicit passes the agent's questions to the client. Without a result the agent has the
// answers. A client of a protocol without sessions gets the questions as its
// result and calls again; one that cannot ask a person learns how to go on.
func (c *call) elicit(a gateway.Answer) (*mcp.CallToolResult, error) {
	if !asksPersons(c.req.ClientCapabilities()) {
		return c.needs(a), nil
	}
	if c.req.ProtocolVersion() >= withoutSessions {
		res := &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{}, RequestState: c.x.ID}
		for _, question := range a.Questions {
			res.InputRequests[question.ID] = form(question)
		}
		return res, nil
	}
	// A person needs more time than an agent; a session that waits longer is idle.
	ctx, cancel := context.WithTimeout(c.ctx, c.g.opt.SessionIdle)
	defer cancel()
	var replies []reply
	for _, question := range a.Questions {
		given, err := c.req.Session.Elicit(ctx, form(question))
		if err != nil && c.ctx.Err() != nil {
			return nil, context.Cause(c.ctx)
		}
		if err != nil {
			c.g.opt.Logger.Debug("a question was not answered", "gateway", "mcp", "task_id", c.x.Task.Task, "err", err)
			return c.needs(a), nil
		}
		replies = append(replies, replyBy(question, given))
	}
	return nil, c.send(replies, nil)
}

func asksPersons(can *mcp.ClientCapabilities) bool {
	return can != nil && can.Elicitation != nil && (can.Elicitation.Form != nil || can.Elicitation.URL == nil)
}

// replyBy is the reply that a client gave.
func replyBy(question gateway.Question, given *mcp.ElicitResult) reply {
	if given.Action != "accept" {
		return reply{question, declinedText, true}
	}
	if _, ok := flat(question.Schema); ok {
		return reply{question, string(encode(given.Content)), false}
	}
	text, _ := given.Content[answerField].(string)
	return reply{question, text, false}
}

// answerField is the field of a form whose question has no schema.
const answerField = "answer"

// form is the question as the client shows it: the question's own schema where forms
// may have it, else one field for text.
func form(question gateway.Question) *mcp.ElicitParams {
	p := &mcp.ElicitParams{Mode: "form", Message: question.Text}
	if schema, ok := flat(question.Schema); ok {
		p.RequestedSchema = schema
		return p
	}
	field := map[string]any{"type": "string", "title": "Answer"}
	if len(question.Schema) > 0 {
		field["description"] = fmt.Sprintf("JSON of this schema: %s", question.Schema)
	}
	p.RequestedSchema = map[string]any{
		"type": "object", "properties": map[string]any{answerField: field}, "required": []string{answerField},
	}
	return p
}

// flat reports whether a schema is one that forms may have: an object of plain members
// (https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#requested-schema).
func flat(raw json.RawMessage) (schema map[string]any, ok bool) {
	if json.Unmarshal(raw, &schema) != nil || schema["type"] != "object" {
		return nil, false
	}
	members, ok := schema["properties"].(map[string]any)
	if !ok || len(members) == 0 {
		return nil, false
	}
	for _, member := range members {
		if m, ok := member.(map[string]any); !ok || !plainMember(m) {
			return nil, false
		}
	}
	return schema, true
}

func plainMember(m map[string]any) bool {
	switch m["type"] {
	case "string", "number", "integer", "boolean":
		return true
	case "array":
		items, ok := m["items"].(map[string]any)
		return ok && (items["enum"] != nil || items["anyOf"] != nil)
	}
	return false
}

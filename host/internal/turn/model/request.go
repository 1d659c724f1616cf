package model

import (
	"bytes"
	"encoding/json"
	"slices"

	"skep/abi"
)

// Values of a request's tool_choice that are not tool names.
const (
	choiceAuto     = "auto"
	choiceNone     = "none"
	choiceRequired = "required"
)

// checkRequest refuses what every provider would refuse, without a round trip.
func checkRequest(req abi.ChatRequest) *Error {
	if len(req.Messages) == 0 {
		return newError(Refused, "the request has no messages")
	}
	for i, m := range req.Messages {
		if !slices.Contains([]string{abi.RoleSystem, abi.RoleUser, abi.RoleAssistant, abi.RoleTool}, m.Role) {
			return newError(Refused, "message %d has the role %q, which is unknown", i+1, quote(m.Role))
		}
	}
	for _, t := range req.Tools {
		if len(t.Parameters) > 0 && !isObject(t.Parameters) {
			return newError(Refused, "the parameters of the tool %s are no JSON object", quote(t.Name))
		}
	}
	if len(req.Schema) > 0 && !isObject(req.Schema) {
		return newError(Refused, "response_schema is no JSON object")
	}
	return checkChoice(req)
}

func isObject(raw json.RawMessage) bool {
	return json.Valid(raw) && bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{"))
}

// checkChoice refuses a tool_choice that names no tool of the request.
func checkChoice(req abi.ChatRequest) *Error {
	switch req.ToolChoice {
	case "", choiceAuto, choiceNone:
		return nil
	case choiceRequired:
		if len(req.Tools) > 0 {
			return nil
		}
		return newError(Refused, "tool_choice is %q, and the request has no tools", choiceRequired)
	}
	if !slices.ContainsFunc(req.Tools, func(t abi.Tool) bool { return t.Name == req.ToolChoice }) {
		return newError(Refused, "tool_choice is %q, which is none of the request's tools", quote(req.ToolChoice))
	}
	return nil
}

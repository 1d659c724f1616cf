package model

import (
	"encoding/json"
	"slices"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"skep/abi"
)

func (p *anthropicProvider) params(req abi.ChatRequest) anthropic.MessageNewParams {
	out := anthropic.MessageNewParams{Model: anthropic.Model(p.spec.Model), MaxTokens: p.spec.maxOutput(req)}
	for _, m := range req.Messages {
		// System text goes only into the system field. Text in a user's message that
		// claims to come from the system could come from anyone.
		if m.Role == abi.RoleSystem {
			if m.Content != "" {
				out.System = append(out.System, anthropic.TextBlockParam{Text: m.Content})
			}
			continue
		}
		out.Messages = appendTurn(out.Messages, m)
	}
	for _, t := range req.Tools {
		tool := anthropic.ToolParam{Name: t.Name, InputSchema: param.Override[anthropic.ToolInputSchemaParam](toolParameters(t))}
		if t.Description != "" {
			tool.Description = anthropic.String(t.Description)
		}
		out.Tools = append(out.Tools, anthropic.ToolUnionParam{OfTool: &tool})
	}
	if req.Temperature != nil {
		out.Temperature = anthropic.Float(*req.Temperature)
	}
	if len(req.Schema) > 0 {
		out.OutputConfig.Format = param.Override[anthropic.JSONOutputFormatParam](struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		}{"json_schema", req.Schema})
	}
	if len(req.Tools) > 0 {
		out.ToolChoice = anthropicChoice(req.ToolChoice)
	}
	p.setReasoning(req, &out)
	if p.spec.Cache {
		markCached(&out)
	}
	return out
}

// setReasoning asks for reasoning. The provider refuses it together with a temperature or
// a forced tool; a request with one of those gets no reasoning.
func (p *anthropicProvider) setReasoning(req abi.ChatRequest, out *anthropic.MessageNewParams) {
	if p.spec.Reasoning == "" {
		return
	}
	out.OutputConfig.Effort = anthropic.OutputConfigEffort(p.spec.Reasoning)
	if forced := slices.Contains([]string{"", choiceAuto, choiceNone}, req.ToolChoice); forced && req.Temperature == nil {
		out.Thinking.OfAdaptive = &anthropic.ThinkingConfigAdaptiveParam{Display: anthropic.ThinkingConfigAdaptiveDisplaySummarized}
	}
}

// markCached marks what the provider is to cache: the tools and the system text, which
// tasks share, and the conversation so far, with which the next call begins.
func markCached(out *anthropic.MessageNewParams) {
	mark := anthropic.NewCacheControlEphemeralParam()
	if n := len(out.System); n > 0 {
		out.System[n-1].CacheControl = mark
	} else if n := len(out.Tools); n > 0 {
		out.Tools[n-1].OfTool.CacheControl = mark
	}
	for _, m := range slices.Backward(out.Messages) {
		for _, block := range slices.Backward(m.Content) {
			if at := block.GetCacheControl(); at != nil { // reasoning blocks have none
				*at = mark
				return
			}
		}
	}
}

func anthropicChoice(choice string) anthropic.ToolChoiceUnionParam {
	switch choice {
	case "":
		return anthropic.ToolChoiceUnionParam{}
	case choiceAuto:
		return anthropic.ToolChoiceUnionParam{OfAuto: &anthropic.ToolChoiceAutoParam{}}
	case choiceNone:
		return anthropic.ToolChoiceUnionParam{OfNone: &anthropic.ToolChoiceNoneParam{}}
	case choiceRequired:
		return anthropic.ToolChoiceUnionParam{OfAny: &anthropic.ToolChoiceAnyParam{}}
	}
	return anthropic.ToolChoiceParamOfTool(choice)
}

// appendTurn adds a message to the turns. Turns alternate, so a message of the same role
// joins the last turn: the results of parallel calls are one turn, as the provider
// requires.
func appendTurn(turns []anthropic.MessageParam, m abi.ChatMessage) []anthropic.MessageParam {
	blocks, role := userBlocks(m), anthropic.MessageParamRoleUser
	if m.Role == abi.RoleAssistant {
		blocks, role = assistantBlocks(m), anthropic.MessageParamRoleAssistant
	}
	if len(blocks) == 0 {
		return turns
	}
	if last := len(turns) - 1; last >= 0 && turns[last].Role == role {
		turns[last].Content = append(turns[last].Content, blocks...)
		return turns
	}
	return append(turns, anthropic.MessageParam{Role: role, Content: blocks})
}

func userBlocks(m abi.ChatMessage) []anthropic.ContentBlockParamUnion {
	switch {
	case m.Role == abi.RoleTool:
		result := anthropic.ToolResultBlockParam{ToolUseID: m.ToolCallID}
		if m.Content != "" {
			result.Content = []anthropic.ToolResultBlockParamContentUnion{{OfText: &anthropic.TextBlockParam{Text: m.Content}}}
		}
		if m.Error {
			result.IsError = anthropic.Bool(true)
		}
		return []anthropic.ContentBlockParamUnion{{OfToolResult: &result}}
	case m.Content == "":
		return nil
	}
	return []anthropic.ContentBlockParamUnion{anthropic.NewTextBlock(m.Content)}
}

// assistantBlocks begin with the reasoning of the answer: the provider refuses tool calls
// without it.
func assistantBlocks(m abi.ChatMessage) []anthropic.ContentBlockParamUnion {
	var out []anthropic.ContentBlockParamUnion
	var carried carriedBlocks
	if json.Unmarshal(m.Carry, &carried) == nil {
		for _, t := range carried.Blocks {
			switch t.Type {
			case "thinking":
				out = append(out, anthropic.NewThinkingBlock(t.Signature, t.Thinking))
			case "redacted_thinking":
				out = append(out, anthropic.NewRedactedThinkingBlock(t.Data))
			}
		}
	}
	if m.Content != "" {
		out = append(out, anthropic.NewTextBlock(m.Content))
	}
	for _, c := range m.ToolCalls {
		out = append(out, anthropic.NewToolUseBlock(c.ID, argumentsObject(c.Arguments), c.Name))
	}
	return out
}

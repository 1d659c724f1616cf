package model

import (
	"encoding/json"
	"slices"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"skep/abi"
)

func (p *openAIProvider) params(req abi.ChatRequest) openai.ChatCompletionNewParams {
	out := openai.ChatCompletionNewParams{Model: p.spec.Model}
	for _, m := range req.Messages {
		out.Messages = append(out.Messages, openaiMessage(m))
	}
	for _, t := range req.Tools {
		out.Tools = append(out.Tools, openai.ChatCompletionFunctionTool(openaiFunction(t)))
	}
	if bound := p.spec.maxOutput(req); p.isOpenAI {
		out.MaxCompletionTokens = openai.Int(bound)
	} else {
		out.MaxTokens = openai.Int(bound)
	}
	out.ReasoningEffort = shared.ReasoningEffort(p.spec.Reasoning)
	if req.Temperature != nil {
		out.Temperature = openai.Float(*req.Temperature)
	}
	if len(req.Schema) > 0 {
		out.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: openaiSchema(req.Schema)}
	}
	switch req.ToolChoice {
	case "":
	case choiceAuto, choiceNone, choiceRequired:
		if len(req.Tools) > 0 {
			out.ToolChoice.OfAuto = openai.String(req.ToolChoice)
		}
	default:
		out.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: req.ToolChoice})
	}
	return out
}

func openaiMessage(m abi.ChatMessage) openai.ChatCompletionMessageParamUnion {
	switch m.Role {
	case abi.RoleSystem:
		return openai.SystemMessage(m.Content)
	case abi.RoleTool:
		content := m.Content
		if m.Error {
			content = "Error: " + content
		}
		return openai.ToolMessage(content, m.ToolCallID)
	case abi.RoleAssistant:
		return openaiAssistant(m)
	}
	return openai.UserMessage(m.Content)
}

func openaiAssistant(m abi.ChatMessage) openai.ChatCompletionMessageParamUnion {
	var out openai.ChatCompletionAssistantMessageParam
	if m.Content != "" || len(m.ToolCalls) == 0 {
		out.Content.OfString = openai.String(m.Content)
	}
	for _, c := range m.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
				ID:       c.ID,
				Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: string(argumentsObject(c.Arguments))},
			},
		})
	}
	var carried carriedReasoning
	if len(m.ToolCalls) > 0 && json.Unmarshal(m.Carry, &carried) == nil && slices.Contains(reasoningFields(), carried.Field) {
		out.SetExtraFields(map[string]any{carried.Field: carried.Text})
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: &out}
}

// openaiFunction keeps the schema of a tool as written, because models follow the order of
// its keys.
func openaiFunction(t abi.Tool) shared.FunctionDefinitionParam {
	return param.Override[shared.FunctionDefinitionParam](struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}{t.Name, t.Description, toolParameters(t)})
}

func openaiSchema(schema json.RawMessage) shared.ResponseFormatJSONSchemaJSONSchemaParam {
	out := shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "answer", Schema: schema}
	if isStrict(schema) {
		out.Strict = openai.Bool(true)
	}
	return out
}

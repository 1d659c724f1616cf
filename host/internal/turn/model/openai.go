package model

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"skep/abi"
)

// openAIProvider speaks OpenAI's Chat Completions API, which many servers copy
// (https://platform.openai.com/docs/api-reference/chat).
type openAIProvider struct {
	spec Spec
	api  openai.ChatCompletionService
	// isOpenAI is set for servers of OpenAI or Azure: only they support and require
	// today's parameter names.
	isOpenAI bool
}

func newOpenAI(s Spec) *openAIProvider {
	opts := []option.RequestOption{option.WithBaseURL(s.BaseURL), option.WithMaxRetries(0)}
	if s.APIKey != "" {
		opts = append(opts, option.WithAPIKey(string(s.APIKey)))
	}
	for name, value := range s.Headers {
		opts = append(opts, option.WithHeader(name, value))
	}
	p := &openAIProvider{spec: s, api: openai.NewChatCompletionService(opts...)}
	if u, err := url.Parse(s.BaseURL); err == nil {
		p.isOpenAI = strings.HasSuffix(u.Hostname(), ".openai.com") || strings.HasSuffix(u.Hostname(), ".azure.com")
	}
	return p
}

func (p *openAIProvider) attempt(ctx context.Context, client *http.Client, req abi.ChatRequest, key string, into *answer) error {
	opts := []option.RequestOption{option.WithHTTPClient(client)}
	if key != "" {
		opts = append(opts, option.WithHeader(keyHeader, key))
	}
	params := p.params(req)
	if into.emit == nil {
		return p.attemptWhole(ctx, params, into, opts)
	}
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := p.api.NewStreaming(ctx, params, opts...)
	defer func() { _ = stream.Close() }()
	calls := map[int64]int{}
	for stream.Next() {
		into.billable = true
		if err := readChunk(stream.Current(), into, calls); err != nil {
			return err
		}
	}
	var broken *ssestream.StreamError
	if err := stream.Err(); errors.As(err, &broken) {
		return parseProviderError(broken.Event.Data).toError(0, p.spec.APIKey != "", into.scrub)
	} else if err != nil {
		return err
	}
	return nil
}

const keyHeader = "Idempotency-Key"

func (p *openAIProvider) attemptWhole(ctx context.Context, params openai.ChatCompletionNewParams, into *answer, opts []option.RequestOption) error {
	got, err := p.api.New(ctx, params, opts...)
	if err != nil {
		return markNotJSON(err)
	}
	if got == nil || len(got.Choices) == 0 { // a body of null decodes to nothing
		return newError(Malformed, "the answer has no choices")
	}
	choice := got.Choices[0]
	if got.JSON.Usage.Valid() {
		into.usage = openAIUsage(got.Usage)
	}
	if err := readReasoning(choice.Message.JSON.ExtraFields, into); err != nil {
		return err
	}
	if err := into.addText(choice.Message.Content + choice.Message.Refusal); err != nil {
		return err
	}
	for _, c := range choice.Message.ToolCalls {
		at, err := into.addCall(c.ID, c.Function.Name)
		if err == nil {
			err = into.addArguments(at, c.Function.Arguments)
		}
		if err != nil {
			return err
		}
	}
	into.finish = openAIFinish(choice.FinishReason, choice.Message.Refusal != "")
	return nil
}

// markNotJSON marks the library's errors for an answer that is not JSON. The library has
// no error type for them.
func markNotJSON(err error) error {
	if strings.HasPrefix(err.Error(), "expected destination type") || strings.HasPrefix(err.Error(), "error parsing response json") {
		return errors.Join(errNotJSON, err)
	}
	return err
}

func readChunk(chunk openai.ChatCompletionChunk, into *answer, calls map[int64]int) error {
	if chunk.JSON.Usage.Valid() {
		into.usage = openAIUsage(chunk.Usage)
	}
	if len(chunk.Choices) == 0 {
		return nil
	}
	choice := chunk.Choices[0]
	if err := readReasoning(choice.Delta.JSON.ExtraFields, into); err != nil {
		return err
	}
	if err := into.addText(choice.Delta.Content + choice.Delta.Refusal); err != nil {
		return err
	}
	for _, c := range choice.Delta.ToolCalls {
		if err := readCall(c, into, calls); err != nil {
			return err
		}
	}
	if choice.Delta.Refusal != "" {
		into.finish = abi.FinishFiltered
	}
	if choice.FinishReason != "" {
		into.finish = openAIFinish(choice.FinishReason, into.finish == abi.FinishFiltered)
	}
	return nil
}

// readCall adds a part of a tool call. A new id at a known index starts another call: some
// servers give every call the index 0.
func readCall(c openai.ChatCompletionChunkChoiceDeltaToolCall, into *answer, calls map[int64]int) error {
	at, known := calls[c.Index]
	if !known || c.ID != "" && into.calls[at].ID != "" && into.calls[at].ID != c.ID {
		var err error
		if at, err = into.addCall(c.ID, c.Function.Name); err != nil {
			return err
		}
		calls[c.Index] = at
	} else if into.calls[at].Name == "" {
		if err := into.setCallName(at, c.Function.Name); err != nil {
			return err
		}
	}
	return into.addArguments(at, c.Function.Arguments)
}

// reasoningFields are the fields in which compatible servers send a model's reasoning.
func reasoningFields() []string { return []string{"reasoning_content", "reasoning"} }

// carriedReasoning is the reasoning of an answer with calls. Servers that send it want it
// back with the calls; with plain text, some refuse it.
type carriedReasoning struct {
	Field string `json:"openai"`
	Text  string `json:"text"`
}

func readReasoning(extra map[string]respjson.Field, into *answer) error {
	for _, name := range reasoningFields() {
		var text string
		if json.Unmarshal([]byte(extra[name].Raw()), &text) != nil || text == "" {
			continue
		}
		if into.carry == nil {
			into.carry = func() any {
				if len(into.calls) == 0 {
					return nil
				}
				return carriedReasoning{name, into.reasoning.text.String()}
			}
		}
		return into.addReasoning(text)
	}
	return nil
}

func openAIUsage(u openai.CompletionUsage) *abi.ChatUsage {
	return &abi.ChatUsage{
		InputTokens: u.PromptTokens, CachedTokens: u.PromptTokensDetails.CachedTokens,
		OutputTokens: u.CompletionTokens, ReasoningTokens: u.CompletionTokensDetails.ReasoningTokens,
	}
}

// openAIFinish maps a finish reason. Servers invent reasons; an unknown one means stop.
func openAIFinish(reason string, refused bool) string {
	switch {
	case refused || reason == "content_filter":
		return abi.FinishFiltered
	case reason == "length":
		return abi.FinishLength
	case reason == "tool_calls" || reason == "function_call":
		return abi.FinishToolCalls
	}
	return abi.FinishStop
}

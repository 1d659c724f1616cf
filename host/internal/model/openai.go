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

// chatCompletions speaks OpenAI's chat completions, which many servers copy.
type chatCompletions struct {
	s   Spec
	api openai.ChatCompletionService
	// own says that the server is one of OpenAI's: only theirs know all names
	// of today, and only theirs want them.
	own bool
}

func newOpenAI(s Spec) *chatCompletions {
	opts := []option.RequestOption{option.WithBaseURL(s.BaseURL), option.WithMaxRetries(0)}
	if s.APIKey != "" {
		opts = append(opts, option.WithAPIKey(string(s.APIKey)))
	}
	for name, value := range s.Headers {
		opts = append(opts, option.WithHeader(name, value))
	}
	p := &chatCompletions{s: s, api: openai.NewChatCompletionService(opts...)}
	if u, err := url.Parse(s.BaseURL); err == nil {
		p.own = strings.HasSuffix(u.Hostname(), ".openai.com") || strings.HasSuffix(u.Hostname(), ".azure.com")
	}
	return p
}

func (p *chatCompletions) ask(ctx context.Context, client *http.Client, req abi.ChatRequest, key string, into *answer) error {
	opts := []option.RequestOption{option.WithHTTPClient(client)}
	if key != "" {
		opts = append(opts, option.WithHeader(keyHeader, key))
	}
	params := p.params(req)
	if into.emit == nil {
		return p.askWhole(ctx, params, into, opts)
	}
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := p.api.NewStreaming(ctx, params, opts...)
	defer func() { _ = stream.Close() }()
	calls := map[int64]int{}
	for stream.Next() {
		into.begun = true
		if err := readChunk(stream.Current(), into, calls); err != nil {
			return err
		}
	}
	var broken *ssestream.StreamError
	if err := stream.Err(); errors.As(err, &broken) {
		return readComplaint(broken.Event.Data).fault(0, p.s.APIKey != "", into.scrub)
	} else if err != nil {
		return err
	}
	return nil
}

const keyHeader = "Idempotency-Key"

func (p *chatCompletions) askWhole(ctx context.Context, params openai.ChatCompletionNewParams, into *answer, opts []option.RequestOption) error {
	got, err := p.api.New(ctx, params, opts...)
	if err != nil {
		return unread(err)
	}
	if got == nil || len(got.Choices) == 0 { // the body null makes no answer at all
		return fault(Malformed, "the answer has no choices")
	}
	choice := got.Choices[0]
	if got.JSON.Usage.Valid() {
		into.usage = usageOf(got.Usage)
	}
	if err := readThoughts(choice.Message.JSON.ExtraFields, into); err != nil {
		return err
	}
	if err := into.say(choice.Message.Content + choice.Message.Refusal); err != nil {
		return err
	}
	for _, c := range choice.Message.ToolCalls {
		at, err := into.call(c.ID, c.Function.Name)
		if err == nil {
			err = into.argue(at, c.Function.Arguments)
		}
		if err != nil {
			return err
		}
	}
	into.finish = finishOf(choice.FinishReason, choice.Message.Refusal != "")
	return nil
}

// unread marks what the library says of an answer that is no JSON: it has no
// type for it.
func unread(err error) error {
	if strings.HasPrefix(err.Error(), "expected destination type") || strings.HasPrefix(err.Error(), "error parsing response json") {
		return errors.Join(errUnread, err)
	}
	return err
}

func readChunk(chunk openai.ChatCompletionChunk, into *answer, calls map[int64]int) error {
	if chunk.JSON.Usage.Valid() {
		into.usage = usageOf(chunk.Usage)
	}
	if len(chunk.Choices) == 0 {
		return nil
	}
	choice := chunk.Choices[0]
	if err := readThoughts(choice.Delta.JSON.ExtraFields, into); err != nil {
		return err
	}
	if err := into.say(choice.Delta.Content + choice.Delta.Refusal); err != nil {
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
		into.finish = finishOf(choice.FinishReason, into.finish == abi.FinishFiltered)
	}
	return nil
}

// readCall takes a part of a tool call. A new id at a known index is another
// call: some servers give every call the index 0.
func readCall(c openai.ChatCompletionChunkChoiceDeltaToolCall, into *answer, calls map[int64]int) error {
	at, known := calls[c.Index]
	if !known || c.ID != "" && into.calls[at].ID != "" && into.calls[at].ID != c.ID {
		var err error
		if at, err = into.call(c.ID, c.Function.Name); err != nil {
			return err
		}
		calls[c.Index] = at
	} else if into.calls[at].Name == "" {
		if err := into.name(at, c.Function.Name); err != nil {
			return err
		}
	}
	return into.argue(at, c.Function.Arguments)
}

// thoughts are the fields in which servers that are compatible with OpenAI's give
// a model's reasoning.
func thoughts() []string { return []string{"reasoning_content", "reasoning"} }

// carriedThoughts is the reasoning of an answer with calls. Servers that give it
// want it back with the calls; with plain text, some refuse it.
type carriedThoughts struct {
	Field string `json:"openai"`
	Text  string `json:"text"`
}

func readThoughts(extra map[string]respjson.Field, into *answer) error {
	for _, name := range thoughts() {
		var text string
		if json.Unmarshal([]byte(extra[name].Raw()), &text) != nil || text == "" {
			continue
		}
		if into.carry == nil {
			into.carry = func() any {
				if len(into.calls) == 0 {
					return nil
				}
				return carriedThoughts{name, into.reasoning.said.String()}
			}
		}
		return into.reason(text)
	}
	return nil
}

func usageOf(u openai.CompletionUsage) *abi.ChatUsage {
	return &abi.ChatUsage{
		InputTokens: u.PromptTokens, CachedTokens: u.PromptTokensDetails.CachedTokens,
		OutputTokens: u.CompletionTokens, ReasoningTokens: u.CompletionTokensDetails.ReasoningTokens,
	}
}

// finishOf names why the model stopped. Servers invent reasons; each is an end.
func finishOf(reason string, refused bool) string {
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

package model

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"go.opentelemetry.io/otel/trace/noop"

	"skep/abi"
)

// anthropicProvider speaks Anthropic's Messages API
// (https://docs.anthropic.com/en/api/messages). Every answer is streamed, because the
// library refuses long requests that are not.
type anthropicProvider struct {
	spec Spec
	api  anthropic.MessageService
}

func newAnthropic(s Spec) *anthropicProvider {
	opts := []option.RequestOption{
		option.WithBaseURL(s.BaseURL), option.WithMaxRetries(0),
		// Prompts must not reach the traces of the process.
		option.WithTracerProvider(noop.NewTracerProvider()),
	}
	if s.APIKey != "" {
		opts = append(opts, option.WithAPIKey(string(s.APIKey)))
	}
	for name, value := range s.Headers {
		opts = append(opts, option.WithHeader(name, value))
	}
	return &anthropicProvider{spec: s, api: anthropic.NewMessageService(opts...)}
}

func (p *anthropicProvider) attempt(ctx context.Context, client *http.Client, req abi.ChatRequest, key string, into *answer) error {
	opts := []option.RequestOption{option.WithHTTPClient(client)}
	if key != "" {
		opts = append(opts, option.WithHeader(keyHeader, key))
	}
	stream := p.api.NewStreaming(ctx, p.params(req), opts...)
	if err := stream.Err(); err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	r := anthropicStream{into: into, blocks: map[int64]*anthropicBlock{}}
	for stream.Next() {
		into.billable = true
		if err := r.handleEvent(stream.Current()); err != nil {
			return err
		}
	}
	var broken *anthropic.Error
	if err := stream.Err(); errors.As(err, &broken) {
		return parseProviderError([]byte(broken.RawJSON())).toError(0, p.spec.APIKey != "", into.scrub)
	} else if err != nil {
		return err
	}
	return r.finishAnswer()
}

// anthropicStream is an answer that is being read. It is complete only after the event
// message_stop.
type anthropicStream struct {
	into   *answer
	blocks map[int64]*anthropicBlock
	order  []*anthropicBlock
	finish string
	usage  anthropic.Usage
	// hasUsage is set once the provider has reported usage, stopped once it has ended the
	// message.
	hasUsage, stopped bool
}

// anthropicBlock is one content block of an answer.
type anthropicBlock struct {
	kind string
	call int // index in the answer's calls
	// hasArguments is set once arguments came in pieces.
	hasArguments bool
	reasoning    reasoningBlock
	// thinking and signature are the pieces that follow the start in reasoning.
	thinking, signature strings.Builder
}

// completeReasoning returns the block's reasoning with all its pieces.
func (b *anthropicBlock) completeReasoning() reasoningBlock {
	t := b.reasoning
	t.Thinking += b.thinking.String()
	t.Signature += b.signature.String()
	return t
}

// reasoningBlock is a block of reasoning. The provider wants it back unchanged.
type reasoningBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking,omitempty"`
	Signature string `json:"signature,omitempty"`
	Data      string `json:"data,omitempty"`
}

// carriedBlocks is the reasoning of an answer.
type carriedBlocks struct {
	Blocks []reasoningBlock `json:"anthropic"`
}

func (r *anthropicStream) handleEvent(e anthropic.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		r.usage, r.hasUsage = e.Message.Usage, e.Message.JSON.Usage.Valid()
	case "content_block_start":
		return r.startBlock(e)
	case "content_block_delta":
		return r.addDelta(e)
	case "message_delta":
		r.addUsage(e.Usage)
		r.finish = cmp.Or(anthropicFinish(e.Delta.StopReason), r.finish)
	case "message_stop":
		r.stopped = true
	}
	return nil
}

func (r *anthropicStream) startBlock(e anthropic.MessageStreamEventUnion) error {
	b := &anthropicBlock{kind: e.ContentBlock.Type}
	r.blocks[e.Index] = b
	r.order = append(r.order, b)
	if len(r.order) > maxBlocks {
		return newError(TooLarge, "the answer has more than %d blocks", maxBlocks)
	}
	switch b.kind {
	case "text":
		return r.into.addText(e.ContentBlock.Text)
	case "thinking":
		b.reasoning = reasoningBlock{Type: b.kind, Thinking: e.ContentBlock.Thinking, Signature: e.ContentBlock.Signature}
		return r.into.addReasoning(e.ContentBlock.Thinking)
	case "redacted_thinking":
		b.reasoning = reasoningBlock{Type: b.kind, Data: e.ContentBlock.Data}
		return r.into.addSize(len(e.ContentBlock.Data))
	case "tool_use":
		var err error
		b.call, err = r.into.addCall(e.ContentBlock.ID, e.ContentBlock.Name)
		return err
	}
	return nil
}

// maxBlocks bounds the number of blocks in an answer; a block may be empty.
const maxBlocks = 4096

func (r *anthropicStream) addDelta(e anthropic.MessageStreamEventUnion) error {
	b := r.blocks[e.Index]
	if b == nil {
		return newError(Malformed, "the answer goes on with a block that it has not begun")
	}
	switch {
	case e.Delta.Type == "text_delta" && b.kind == "text":
		return r.into.addText(e.Delta.Text)
	case e.Delta.Type == "thinking_delta" && b.kind == "thinking":
		b.thinking.WriteString(e.Delta.Thinking)
		return r.into.addReasoning(e.Delta.Thinking)
	case e.Delta.Type == "signature_delta" && b.kind == "thinking":
		b.signature.WriteString(e.Delta.Signature)
		return r.into.addSize(len(e.Delta.Signature))
	case e.Delta.Type == "input_json_delta" && b.kind == "tool_use":
		b.hasArguments = b.hasArguments || e.Delta.PartialJSON != ""
		return r.into.addArguments(b.call, e.Delta.PartialJSON)
	}
	return nil
}

// addUsage adds the usage at the end of the stream, which is cumulative. Servers omit the
// counts that they sent at the start.
func (r *anthropicStream) addUsage(u anthropic.MessageDeltaUsage) {
	r.hasUsage = r.hasUsage || u.JSON.OutputTokens.Valid()
	r.usage.OutputTokens = max(r.usage.OutputTokens, u.OutputTokens)
	r.usage.InputTokens = max(r.usage.InputTokens, u.InputTokens)
	r.usage.CacheReadInputTokens = max(r.usage.CacheReadInputTokens, u.CacheReadInputTokens)
	r.usage.CacheCreationInputTokens = max(r.usage.CacheCreationInputTokens, u.CacheCreationInputTokens)
	r.usage.OutputTokensDetails.ThinkingTokens = max(r.usage.OutputTokensDetails.ThinkingTokens, u.OutputTokensDetails.ThinkingTokens)
}

func (r *anthropicStream) finishAnswer() error {
	if !r.stopped {
		return nil // it has no finish reason
	}
	var carried carriedBlocks
	for _, b := range r.order {
		switch {
		case b.kind == "tool_use" && !b.hasArguments:
			if err := r.into.addArguments(b.call, "{}"); err != nil {
				return err
			}
		case b.reasoning.Type != "":
			carried.Blocks = append(carried.Blocks, b.completeReasoning())
		}
	}
	if len(carried.Blocks) > 0 {
		r.into.carry = func() any { return carried }
	}
	if r.hasUsage {
		u := r.usage
		r.into.usage = &abi.ChatUsage{
			InputTokens:  clampTokens(u.InputTokens) + clampTokens(u.CacheReadInputTokens) + clampTokens(u.CacheCreationInputTokens),
			CachedTokens: u.CacheReadInputTokens, CacheWriteTokens: u.CacheCreationInputTokens,
			OutputTokens: u.OutputTokens, ReasoningTokens: u.OutputTokensDetails.ThinkingTokens,
		}
	}
	r.into.finish = cmp.Or(r.finish, abi.FinishStop)
	return nil
}

// clampTokens bounds a count, so that a sum of counts does not overflow.
func clampTokens(n int64) int64 { return min(max(n, 0), maxCounted+1) }

func anthropicFinish(reason anthropic.StopReason) string {
	switch reason {
	case "":
		return ""
	case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
		return abi.FinishLength
	case anthropic.StopReasonToolUse:
		return abi.FinishToolCalls
	case anthropic.StopReasonRefusal:
		return abi.FinishFiltered
	}
	return abi.FinishStop
}

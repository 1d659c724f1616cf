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

// messages speaks Anthropic's messages. Every answer is streamed: the library
// refuses to wait for long ones otherwise.
type messages struct {
	s   Spec
	api anthropic.MessageService
}

func newAnthropic(s Spec) *messages {
	opts := []option.RequestOption{
		option.WithBaseURL(s.BaseURL), option.WithMaxRetries(0),
		// Prompts must not reach whatever traces are collected in the process.
		option.WithTracerProvider(noop.NewTracerProvider()),
	}
	if s.APIKey != "" {
		opts = append(opts, option.WithAPIKey(string(s.APIKey)))
	}
	for name, value := range s.Headers {
		opts = append(opts, option.WithHeader(name, value))
	}
	return &messages{s: s, api: anthropic.NewMessageService(opts...)}
}

func (p *messages) ask(ctx context.Context, client *http.Client, req abi.ChatRequest, key string, into *answer) error {
	opts := []option.RequestOption{option.WithHTTPClient(client)}
	if key != "" {
		opts = append(opts, option.WithHeader(keyHeader, key))
	}
	stream := p.api.NewStreaming(ctx, p.params(req), opts...)
	if err := stream.Err(); err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	r := reading{into: into, blocks: map[int64]*block{}}
	for stream.Next() {
		into.begun = true
		if err := r.event(stream.Current()); err != nil {
			return err
		}
	}
	var broken *anthropic.Error
	if err := stream.Err(); errors.As(err, &broken) {
		return readComplaint([]byte(broken.RawJSON())).fault(0, p.s.APIKey != "", into.scrub)
	} else if err != nil {
		return err
	}
	return r.end()
}

// reading is an answer of messages on its way. It ends with the event
// message_stop: only then its parts are whole.
type reading struct {
	into   *answer
	blocks map[int64]*block
	order  []*block
	finish string
	usage  anthropic.Usage
	// counted says that the provider has sent its counts, stopped that it has
	// ended the message.
	counted, stopped bool
}

// block is a part of an answer.
type block struct {
	kind string
	call int // of the answer's calls
	// argued says that arguments came in pieces.
	argued  bool
	thought thought
	// thinking and signature are the pieces that follow the beginning in thought.
	thinking, signature strings.Builder
}

// whole is the block's reasoning, its beginning and the pieces.
func (b *block) whole() thought {
	t := b.thought
	t.Thinking += b.thinking.String()
	t.Signature += b.signature.String()
	return t
}

// thought is a block of reasoning that the provider wants back unchanged.
type thought struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking,omitempty"`
	Signature string `json:"signature,omitempty"`
	Data      string `json:"data,omitempty"`
}

// carriedBlocks is an answer's reasoning.
type carriedBlocks struct {
	Blocks []thought `json:"anthropic"`
}

func (r *reading) event(e anthropic.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		r.usage, r.counted = e.Message.Usage, e.Message.JSON.Usage.Valid()
	case "content_block_start":
		return r.start(e)
	case "content_block_delta":
		return r.delta(e)
	case "message_delta":
		r.count(e.Usage)
		r.finish = cmp.Or(stopOf(e.Delta.StopReason), r.finish)
	case "message_stop":
		r.stopped = true
	}
	return nil
}

func (r *reading) start(e anthropic.MessageStreamEventUnion) error {
	b := &block{kind: e.ContentBlock.Type}
	r.blocks[e.Index] = b
	r.order = append(r.order, b)
	if len(r.order) > maxBlocks {
		return fault(TooLarge, "the answer has more than %d blocks", maxBlocks)
	}
	switch b.kind {
	case "text":
		return r.into.say(e.ContentBlock.Text)
	case "thinking":
		b.thought = thought{Type: b.kind, Thinking: e.ContentBlock.Thinking, Signature: e.ContentBlock.Signature}
		return r.into.reason(e.ContentBlock.Thinking)
	case "redacted_thinking":
		b.thought = thought{Type: b.kind, Data: e.ContentBlock.Data}
		return r.into.grow(len(e.ContentBlock.Data))
	case "tool_use":
		var err error
		b.call, err = r.into.call(e.ContentBlock.ID, e.ContentBlock.Name)
		return err
	}
	return nil
}

// maxBlocks bounds the parts of an answer, which may be empty.
const maxBlocks = 4096

func (r *reading) delta(e anthropic.MessageStreamEventUnion) error {
	b := r.blocks[e.Index]
	if b == nil {
		return fault(Malformed, "the answer goes on with a block that it has not begun")
	}
	switch {
	case e.Delta.Type == "text_delta" && b.kind == "text":
		return r.into.say(e.Delta.Text)
	case e.Delta.Type == "thinking_delta" && b.kind == "thinking":
		b.thinking.WriteString(e.Delta.Thinking)
		return r.into.reason(e.Delta.Thinking)
	case e.Delta.Type == "signature_delta" && b.kind == "thinking":
		b.signature.WriteString(e.Delta.Signature)
		return r.into.grow(len(e.Delta.Signature))
	case e.Delta.Type == "input_json_delta" && b.kind == "tool_use":
		b.argued = b.argued || e.Delta.PartialJSON != ""
		return r.into.argue(b.call, e.Delta.PartialJSON)
	}
	return nil
}

// count takes the counts of the end, which are sums; servers leave out those
// that they gave at the start.
func (r *reading) count(u anthropic.MessageDeltaUsage) {
	r.counted = r.counted || u.JSON.OutputTokens.Valid()
	r.usage.OutputTokens = max(r.usage.OutputTokens, u.OutputTokens)
	r.usage.InputTokens = max(r.usage.InputTokens, u.InputTokens)
	r.usage.CacheReadInputTokens = max(r.usage.CacheReadInputTokens, u.CacheReadInputTokens)
	r.usage.CacheCreationInputTokens = max(r.usage.CacheCreationInputTokens, u.CacheCreationInputTokens)
	r.usage.OutputTokensDetails.ThinkingTokens = max(r.usage.OutputTokensDetails.ThinkingTokens, u.OutputTokensDetails.ThinkingTokens)
}

func (r *reading) end() error {
	if !r.stopped {
		return nil // it has no finish
	}
	var carried carriedBlocks
	for _, b := range r.order {
		switch {
		case b.kind == "tool_use" && !b.argued:
			if err := r.into.argue(b.call, "{}"); err != nil {
				return err
			}
		case b.thought.Type != "":
			carried.Blocks = append(carried.Blocks, b.whole())
		}
	}
	if len(carried.Blocks) > 0 {
		r.into.carry = func() any { return carried }
	}
	if r.counted {
		u := r.usage
		r.into.usage = &abi.ChatUsage{
			InputTokens:  capped(u.InputTokens) + capped(u.CacheReadInputTokens) + capped(u.CacheCreationInputTokens),
			CachedTokens: u.CacheReadInputTokens, CacheWriteTokens: u.CacheCreationInputTokens,
			OutputTokens: u.OutputTokens, ReasoningTokens: u.OutputTokensDetails.ThinkingTokens,
		}
	}
	r.into.finish = cmp.Or(r.finish, abi.FinishStop)
	return nil
}

// capped is a count of which a sum can be made.
func capped(n int64) int64 { return min(max(n, 0), maxCounted+1) }

func stopOf(reason anthropic.StopReason) string {
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

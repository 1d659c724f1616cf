package capability

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"skep/abi"
	"skep/host/internal/swarm"
)

// Model answers conversations at a price. It is safe for concurrent use.
type Model interface {
	// Name is the provider's name of the model.
	Name() string
	// MaxCost is the most that a call can cost.
	MaxCost(req abi.ChatRequest) swarm.Spend
	// Chat calls the model, and passes the pieces of its answer to emit, if not nil. The
	// cost also counts with an error; if it is unknown, it is [Model.MaxCost].
	Chat(ctx context.Context, req abi.ChatRequest, key string, emit func(abi.ChatPiece) error) (abi.ChatResponse, swarm.Spend, *ModelFault)
}

// ModelFault is why a call of a model has failed.
type ModelFault struct {
	// Fault is for the agent.
	Fault *abi.Error
	// Cause is for operators: without content and words of others. It is empty for a call that was
	// given up here.
	Cause string
}

// chatHandler prepares a call of a model. A call that needs no model to be refused never
// leaves the turn.
func (o *ops) chatHandler(req []byte) (handler, bool) {
	h := handler{streams: true, noRetry: (*ops).retryForbidden, outlives: true}
	var ask abi.ChatRequest
	fault := decode(abi.OpLLMChat, req, &ask)
	var m Model
	if fault == nil {
		m, fault = o.grantedModel(ask)
	}
	if fault == nil {
		h.maxCost, h.model = m.MaxCost(ask), m.Name()
		o.j.writer.UseModel(m.Name())
	}
	h.effect = func(_ *ops, _ context.Context, _ []byte, stream bool) (effectFunc, *abi.Error) {
		if fault != nil {
			return nil, fault
		}
		return chat{m, ask, h.maxCost, stream}.run, nil
	}
	return h, true
}

// grantedModel returns the model for a valid and granted request.
func (o *ops) grantedModel(ask abi.ChatRequest) (Model, *abi.Error) {
	if o.models == nil {
		return nil, unsupported(abi.OpLLMChat)
	}
	if fault := checkChat(ask); fault != nil {
		return nil, fault
	}
	if !slices.Contains(o.allow.LLM, ask.Model) {
		return nil, abi.Errorf(abi.CodeDenied, abi.OpLLMChat, "grant",
			"the model %.64q is not granted to %s; it takes allow = { llm = [%.64q] } in %s", ask.Model, o.callerName(), ask.Model, o.tableName())
	}
	m := o.models[ask.Model]
	if m == nil {
		return nil, abi.Errorf(abi.CodeNotFound, abi.OpLLMChat, "model", "there is no model %.64q; it takes [models.%.64s]", ask.Model, ask.Model)
	}
	return m, nil
}

// chat is a call of a model.
type chat struct {
	m       Model
	ask     abi.ChatRequest
	maxCost swarm.Spend
	stream  bool
}

func (c chat) run(ctx context.Context, out *asyncOp) *abi.Error {
	out.setCost(c.maxCost) // until the cost is known
	var emit func(abi.ChatPiece) error
	if c.stream {
		emit = func(p abi.ChatPiece) error { return asError(writeLine(out, p)) }
	}
	rsp, cost, broken := c.m.Chat(ctx, c.ask, out.key, emit)
	out.setCost(cost)
	out.setUsage(rsp.Usage)
	switch {
	case broken != nil:
		if broken.Cause != "" {
			out.setModelFailure(swarm.ModelFailure{Model: c.m.Name(), Kind: broken.Fault.Reason, Cause: broken.Cause})
		}
		return broken.Fault
	case c.stream:
		rsp.Text, rsp.Reasoning = "", ""
		return writeLine(out, abi.ChatPiece{End: &rsp})
	}
	text, fault := encodeUnescaped(abi.OpLLMChat, rsp)
	if fault != nil {
		return fault
	}
	return out.write(text)
}

// asError converts an *abi.Error to an error, nil for nil.
func asError(fault *abi.Error) error {
	if fault == nil {
		return nil
	}
	return fault
}

func writeLine(out *asyncOp, p abi.ChatPiece) *abi.Error {
	text, fault := encodeUnescaped(abi.OpLLMChat, p)
	if fault != nil {
		return fault
	}
	return out.write(append(text, '\n'))
}

// encodeUnescaped encodes without HTML escapes, which would enlarge foreign text.
func encodeUnescaped(op abi.Op, v any) ([]byte, *abi.Error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, abi.Errorf(abi.CodeInternal, op, "encode", "answer: %v", err)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

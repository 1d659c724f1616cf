package capability

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"skep/abi"
	"skep/host/internal/swarm"
)

// Model answers conversations, at a price. It is safe for concurrent use.
type Model interface {
	// Most is the most that a call can cost.
	Most(req abi.ChatRequest) swarm.Spend
	// Chat asks the model, and hands the pieces of its answer to emit as they come,
	// if there is one. The cost counts also where a fault comes with it: it is
	// [Model.Most] where nobody knows what a call has cost.
	Chat(ctx context.Context, req abi.ChatRequest, key string, emit func(abi.ChatPiece) error) (abi.ChatResponse, swarm.Spend, *abi.Error)
}

// chats prepares a call of a model. What needs no model to be refused never leaves
// the turn.
func (o *ops) chats(req []byte) (handler, bool) {
	h := handler{streams: true, once: (*ops).notTwice}
	var ask abi.ChatRequest
	fault := decode(abi.OpLLMChat, req, &ask)
	var m Model
	if fault == nil {
		m, fault = o.model(ask)
	}
	if fault == nil {
		h.most = m.Most(ask)
	}
	h.effect = func(_ *ops, _ context.Context, _ []byte, stream bool) (work, *abi.Error) {
		if fault != nil {
			return nil, fault
		}
		return chat{m, ask, h.most, stream}.run, nil
	}
	return h, true
}

// model finds the model of a request that is well made and granted.
func (o *ops) model(ask abi.ChatRequest) (Model, *abi.Error) {
	if o.models == nil {
		return nil, unsupported(abi.OpLLMChat)
	}
	if fault := checkChat(ask); fault != nil {
		return nil, fault
	}
	if !slices.Contains(o.allow.LLM, ask.Model) {
		return nil, abi.Errorf(abi.CodeDenied, abi.OpLLMChat, "grant",
			"the model %.64q is not granted to %s; it takes allow = { llm = [%.64q] } in %s", ask.Model, o.who(), ask.Model, o.tableName())
	}
	m := o.models[ask.Model]
	if m == nil {
		return nil, abi.Errorf(abi.CodeNotFound, abi.OpLLMChat, "model", "there is no model %.64q; it takes [models.%.64s]", ask.Model, ask.Model)
	}
	return m, nil
}

// chat is a call of a model.
type chat struct {
	m      Model
	ask    abi.ChatRequest
	most   swarm.Spend
	stream bool
}

func (c chat) run(ctx context.Context, out *flight) *abi.Error {
	out.charge(c.most) // until it is known
	var emit func(abi.ChatPiece) error
	if c.stream {
		emit = func(p abi.ChatPiece) error { return raised(writeLine(out, p)) }
	}
	rsp, cost, fault := c.m.Chat(ctx, c.ask, out.key, emit)
	out.charge(cost)
	switch {
	case fault != nil:
		return fault
	case c.stream:
		rsp.Text, rsp.Reasoning = "", ""
		return writeLine(out, abi.ChatPiece{End: &rsp})
	}
	text, fault := plainJSON(abi.OpLLMChat, rsp)
	if fault != nil {
		return fault
	}
	return out.write(text)
}

// raised is a fault as an error, nil for none.
func raised(fault *abi.Error) error {
	if fault == nil {
		return nil
	}
	return fault
}

func writeLine(out *flight, p abi.ChatPiece) *abi.Error {
	text, fault := plainJSON(abi.OpLLMChat, p)
	if fault != nil {
		return fault
	}
	return out.write(append(text, '\n'))
}

// plainJSON encodes texts of others, which would swell with HTML's characters
// escaped.
func plainJSON(op abi.Op, v any) ([]byte, *abi.Error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, abi.Errorf(abi.CodeInternal, op, "encode", "answer: %v", err)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

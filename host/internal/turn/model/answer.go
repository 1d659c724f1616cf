package model

import (
	"encoding/json"
	"fmt"
	"strings"

	"skep/abi"
	"skep/host/internal/turn/egress"
)

// Limits of an answer. They are far above what models write, and keep a broken or hostile
// provider from filling the host's memory.
const (
	maxAnswer    = 4 << 20   // bytes of text, reasoning and arguments
	maxCalls     = 128       // tool calls
	maxArguments = 256 << 10 // bytes of one call's arguments
	maxCarry     = 1 << 20   // bytes
	maxName      = 512       // bytes of the id or name of a call
)

// answer collects the response of one attempt and emits its pieces.
type answer struct {
	emit            func(abi.ChatPiece) error
	text, reasoning scrubbedText
	scrub           *egress.Scrubber
	calls           []abi.ChatCall
	arguments       []*strings.Builder
	size            int
	// billable is set once the provider has begun to answer: it may charge for the
	// attempt.
	billable bool
	// emitted is set once a piece was emitted; emitErr is the error of emit.
	emitted bool
	emitErr error

	finish string // empty until the provider has sent it
	usage  *abi.ChatUsage
	// carry returns what the caller hands back with the next request. It may be nil, and
	// may return nil.
	carry func() any
}

// scrubbedText is text that comes in pieces. A suffix that may begin a key is held back
// until the next piece.
type scrubbedText struct {
	text    strings.Builder
	pending string
}

func (s *scrubbedText) add(scrub *egress.Scrubber, delta string) string {
	all := s.pending + delta
	ready := len(all) - scrub.PartialLen(all)
	s.pending = all[ready:]
	return s.write(scrub, all[:ready])
}

func (s *scrubbedText) flush(scrub *egress.Scrubber) string {
	rest := s.pending
	s.pending = ""
	return s.write(scrub, rest)
}

func (s *scrubbedText) write(scrub *egress.Scrubber, text string) string {
	text = scrub.Text(text)
	s.text.WriteString(text)
	return text
}

func (a *answer) addText(delta string) error {
	if err := a.addSize(len(delta)); err != nil {
		return err
	}
	return a.emitPiece(abi.ChatPiece{Delta: a.text.add(a.scrub, delta)})
}

func (a *answer) addReasoning(delta string) error {
	if err := a.addSize(len(delta)); err != nil {
		return err
	}
	return a.emitPiece(abi.ChatPiece{Reasoning: a.reasoning.add(a.scrub, delta)})
}

func (a *answer) addSize(n int) error {
	if a.size += n; a.size > maxAnswer {
		return newError(TooLarge, "the answer has more than %d bytes", maxAnswer)
	}
	return nil
}

func (a *answer) emitPiece(p abi.ChatPiece) error {
	if a.emit == nil || p.Delta == "" && p.Reasoning == "" {
		return nil
	}
	a.emitted = true
	a.emitErr = a.emit(p)
	return a.emitErr
}

// addCall adds a tool call and returns its index.
func (a *answer) addCall(id, name string) (int, error) {
	if len(a.calls) == maxCalls {
		return 0, newError(TooLarge, "the answer has more than %d tool calls", maxCalls)
	}
	if len(id) > maxName {
		return 0, newError(Malformed, "the answer has a tool call whose id is longer than %d bytes", maxName)
	}
	a.calls = append(a.calls, abi.ChatCall{ID: id})
	a.arguments = append(a.arguments, &strings.Builder{})
	at := len(a.calls) - 1
	if err := a.addSize(len(id)); err != nil {
		return at, err
	}
	return at, a.setCallName(at, name)
}

// setCallName sets the name of a call. Some servers send the name after the id.
func (a *answer) setCallName(at int, name string) error {
	if len(name) > maxName {
		return newError(Malformed, "the answer has a tool call whose name is longer than %d bytes", maxName)
	}
	a.calls[at].Name = name
	return a.addSize(len(name))
}

// addArguments adds to the arguments of a call.
func (a *answer) addArguments(at int, part string) error {
	b := a.arguments[at]
	if b.Len()+len(part) > maxArguments {
		return newError(TooLarge, "the arguments of the tool call %s have more than %d bytes", quote(a.scrub.Text(a.calls[at].Name)), maxArguments)
	}
	b.WriteString(part)
	return a.addSize(len(part))
}

// response completes the answer to req. A call without an id gets one that is unique in
// the conversation.
func (a *answer) response(s Spec, req abi.ChatRequest) (abi.ChatResponse, error) {
	if err := a.emitPiece(abi.ChatPiece{Reasoning: a.reasoning.flush(a.scrub)}); err != nil {
		return abi.ChatResponse{}, err
	}
	if err := a.emitPiece(abi.ChatPiece{Delta: a.text.flush(a.scrub)}); err != nil {
		return abi.ChatResponse{}, err
	}
	resp := abi.ChatResponse{Text: a.text.text.String(), Reasoning: a.reasoning.text.String(), Finish: a.finish}
	for i, c := range a.calls {
		if c.Name == "" {
			return abi.ChatResponse{}, newError(Malformed, "the answer has a tool call without a name")
		}
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%d_%d", len(req.Messages), i)
		}
		c.ID, c.Name, c.Arguments = a.scrub.Text(c.ID), a.scrub.Text(c.Name), a.scrub.Text(a.arguments[i].String())
		resp.ToolCalls = append(resp.ToolCalls, c)
	}
	if len(resp.ToolCalls) > 0 && resp.Finish == abi.FinishStop {
		resp.Finish = abi.FinishToolCalls
	}
	resp.Usage = a.usageOrEstimate(s, req)
	var err error
	resp.Carry, err = a.encodeCarry()
	return resp, err
}

// usageOrEstimate returns the usage reported by the provider. Without a report it is the
// reserved number of tokens for the prompt and one token per byte for the answer, so that
// budgets still hold.
func (a *answer) usageOrEstimate(s Spec, req abi.ChatRequest) abi.ChatUsage {
	if a.usage != nil {
		return *a.usage
	}
	most := s.Estimate(req)
	return abi.ChatUsage{InputTokens: most.InputTokens, OutputTokens: min(int64(a.size), most.OutputTokens)}
}

func (a *answer) encodeCarry() (json.RawMessage, error) {
	if a.carry == nil {
		return nil, nil
	}
	carry := a.carry()
	if carry == nil {
		return nil, nil
	}
	raw, err := json.Marshal(carry)
	if err != nil {
		return nil, newError(Malformed, "the answer's reasoning cannot be carried")
	}
	if len(raw) > maxCarry {
		return nil, newError(TooLarge, "the answer's reasoning to hand back has more than %d bytes", maxCarry)
	}
	if clean := a.scrub.Text(string(raw)); clean != string(raw) {
		return nil, nil
	}
	return raw, nil
}

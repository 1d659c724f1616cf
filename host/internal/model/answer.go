package model

import (
	"encoding/json"
	"fmt"
	"strings"

	"skep/abi"
	"skep/host/internal/egress"
)

// Bounds of an answer. They are far above what models write, and keep a broken
// or hostile provider from filling the host.
const (
	maxAnswer    = 4 << 20   // bytes of text, reasoning and arguments
	maxCalls     = 128       // tool calls
	maxArguments = 256 << 10 // bytes of one call's arguments
	maxCarry     = 1 << 20   // bytes
	maxName      = 512       // bytes of a call's id or name
)

// answer is what one try has brought so far. It hands the pieces on.
type answer struct {
	emit            func(abi.ChatPiece) error
	text, reasoning spoken
	scrub           egress.Scrubber
	calls           []abi.ChatCall
	arguments       []*strings.Builder
	size            int
	// begun says that the provider has begun to answer, and may want money for it.
	begun bool
	// handed says that a piece was handed on; stopped is what emit then said.
	handed  bool
	stopped error

	finish string // empty until the provider has said it
	usage  *abi.ChatUsage
	// carry makes what the caller hands back. It may be nil, and give nil.
	carry func() any
}

// spoken is text that comes in pieces. What may be the beginning of a key waits
// for the next one.
type spoken struct {
	said strings.Builder
	held string
}

func (s *spoken) add(scrub egress.Scrubber, delta string) string {
	all := s.held + delta
	ready := len(all) - scrub.Open(all)
	s.held = all[ready:]
	return s.say(scrub, all[:ready])
}

func (s *spoken) end(scrub egress.Scrubber) string {
	rest := s.held
	s.held = ""
	return s.say(scrub, rest)
}

func (s *spoken) say(scrub egress.Scrubber, text string) string {
	text = scrub.Text(text)
	s.said.WriteString(text)
	return text
}

func (a *answer) say(delta string) error {
	if err := a.grow(len(delta)); err != nil {
		return err
	}
	return a.hand(abi.ChatPiece{Delta: a.text.add(a.scrub, delta)})
}

func (a *answer) reason(delta string) error {
	if err := a.grow(len(delta)); err != nil {
		return err
	}
	return a.hand(abi.ChatPiece{Reasoning: a.reasoning.add(a.scrub, delta)})
}

func (a *answer) grow(n int) error {
	if a.size += n; a.size > maxAnswer {
		return fault(TooLarge, "the answer has more than %d bytes", maxAnswer)
	}
	return nil
}

func (a *answer) hand(p abi.ChatPiece) error {
	if a.emit == nil || p.Delta == "" && p.Reasoning == "" {
		return nil
	}
	a.handed = true
	a.stopped = a.emit(p)
	return a.stopped
}

// call opens a tool call and returns its place.
func (a *answer) call(id, name string) (int, error) {
	if len(a.calls) == maxCalls {
		return 0, fault(TooLarge, "the answer has more than %d tool calls", maxCalls)
	}
	if len(id) > maxName {
		return 0, fault(Malformed, "the answer has a tool call whose id is longer than %d bytes", maxName)
	}
	a.calls = append(a.calls, abi.ChatCall{ID: id})
	a.arguments = append(a.arguments, &strings.Builder{})
	at := len(a.calls) - 1
	if err := a.grow(len(id)); err != nil {
		return at, err
	}
	return at, a.name(at, name)
}

// name gives a call its name, which some servers send after its beginning.
func (a *answer) name(at int, name string) error {
	if len(name) > maxName {
		return fault(Malformed, "the answer has a tool call whose name is longer than %d bytes", maxName)
	}
	a.calls[at].Name = name
	return a.grow(len(name))
}

// argue adds to the arguments of a call.
func (a *answer) argue(at int, part string) error {
	b := a.arguments[at]
	if b.Len()+len(part) > maxArguments {
		return fault(TooLarge, "the arguments of the tool call %s have more than %d bytes", quote(a.scrub.Text(a.calls[at].Name)), maxArguments)
	}
	b.WriteString(part)
	return a.grow(len(part))
}

// whole ends the answer to req. Calls without an id get one that no other call
// of the conversation has.
func (a *answer) whole(s Spec, req abi.ChatRequest) (abi.ChatResponse, error) {
	if err := a.hand(abi.ChatPiece{Reasoning: a.reasoning.end(a.scrub)}); err != nil {
		return abi.ChatResponse{}, err
	}
	if err := a.hand(abi.ChatPiece{Delta: a.text.end(a.scrub)}); err != nil {
		return abi.ChatResponse{}, err
	}
	resp := abi.ChatResponse{Text: a.text.said.String(), Reasoning: a.reasoning.said.String(), Finish: a.finish}
	for i, c := range a.calls {
		if c.Name == "" {
			return abi.ChatResponse{}, fault(Malformed, "the answer has a tool call without a name")
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
	resp.Usage = a.used(s, req)
	var err error
	resp.Carry, err = a.carried()
	return resp, err
}

// used is what the provider counted. Of one that does not count, it is what was
// reserved for the prompt, and a token for each byte of the answer: budgets hold
// for it as well.
func (a *answer) used(s Spec, req abi.ChatRequest) abi.ChatUsage {
	if a.usage != nil {
		return *a.usage
	}
	most := s.Estimate(req)
	return abi.ChatUsage{InputTokens: most.InputTokens, OutputTokens: min(int64(a.size), most.OutputTokens)}
}

func (a *answer) carried() (json.RawMessage, error) {
	if a.carry == nil {
		return nil, nil
	}
	carry := a.carry()
	if carry == nil {
		return nil, nil
	}
	raw, err := json.Marshal(carry)
	if err != nil {
		return nil, fault(Malformed, "the answer's reasoning cannot be carried")
	}
	if len(raw) > maxCarry {
		return nil, fault(TooLarge, "the answer's reasoning to hand back has more than %d bytes", maxCarry)
	}
	if clean := a.scrub.Text(string(raw)); clean != string(raw) {
		return nil, nil
	}
	return raw, nil
}

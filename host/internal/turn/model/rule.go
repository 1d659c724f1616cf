package model

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"skep/abi"
)

// rule is one [[rule]] of a script.
type rule struct {
	// System is a pattern that a system message must match.
	System string `toml:"system"`
	// Last are the last messages of the conversation, oldest first.
	Last []messagePattern `toml:"last"`
	// Times is how often the rule may be used; 0 means any number.
	Times int `toml:"times"`

	Text      string      `toml:"text"`
	Reasoning string      `toml:"reasoning"`
	Calls     []ruleCall  `toml:"calls"`
	Finish    string      `toml:"finish"`
	Usage     *ruleTokens `toml:"usage"`
	// Error is a [Kind]: the call fails with it and the message Text.
	Error Kind `toml:"error"`

	system *regexp.Regexp
}

// messagePattern describes one message.
type messagePattern struct {
	Role string `toml:"role"` // empty is any
	// Is is the whole text, Match a pattern in it. Without either, any text matches.
	Is    *string `toml:"is"`
	Match string  `toml:"match"`

	match *regexp.Regexp
}

type ruleCall struct {
	ID        string `toml:"id"`
	Name      string `toml:"name"`
	Arguments string `toml:"arguments"`
}

type ruleTokens struct {
	Input     int64 `toml:"input_tokens"`
	Cached    int64 `toml:"cached_tokens"`
	Written   int64 `toml:"cache_write_tokens"`
	Output    int64 `toml:"output_tokens"`
	Reasoning int64 `toml:"reasoning_tokens"`
}

func (r *rule) compile() (err error) {
	if r.system, err = regexp.Compile(r.System); err != nil {
		return fmt.Errorf("system: %w", err)
	}
	for i := range r.Last {
		w := &r.Last[i]
		if w.match, err = regexp.Compile(w.Match); err != nil {
			return fmt.Errorf("last: match: %w", err)
		}
		if w.Is != nil && w.Match != "" {
			return errors.New("last: a message has both is and match; give one")
		}
		if err := oneOf("last: the role", w.Role, abi.RoleSystem, abi.RoleUser, abi.RoleAssistant, abi.RoleTool); err != nil {
			return err
		}
	}
	for _, c := range r.Calls {
		if c.Name == "" {
			return errors.New("calls: a call has no name")
		}
	}
	if r.Times < 0 {
		return errors.New("times must not be negative")
	}
	if err := oneOf("finish:", r.Finish, abi.FinishStop, abi.FinishToolCalls, abi.FinishLength, abi.FinishFiltered); err != nil {
		return err
	}
	return oneOf("error:", r.Error, RateLimited, Overloaded, Unavailable, Refused, TooLong, TooLarge, Auth, Malformed)
}

// mismatch describes the first difference between a request and the rule; empty if the
// rule matches.
func (r *rule) mismatch(req abi.ChatRequest) string {
	if !slices.ContainsFunc(req.Messages, r.matchesSystem) && r.System != "" {
		return fmt.Sprintf("wants the system's messages to match %q", quote(r.System))
	}
	if len(req.Messages) < len(r.Last) {
		return fmt.Sprintf("wants at least %d messages", len(r.Last))
	}
	for i, m := range req.Messages[len(req.Messages)-len(r.Last):] {
		if why := r.Last[i].mismatch(m); why != "" {
			return fmt.Sprintf("wants message %d of the last %d %s", i+1, len(r.Last), why)
		}
	}
	return ""
}

func (r *rule) matchesSystem(m abi.ChatMessage) bool {
	return m.Role == abi.RoleSystem && r.system.MatchString(m.Content)
}

func (w *messagePattern) mismatch(m abi.ChatMessage) string {
	switch {
	case w.Role != "" && m.Role != w.Role:
		return "to be the " + w.Role + "'s"
	case w.Is != nil && m.Content != *w.Is:
		return fmt.Sprintf("to be %q", quote(*w.Is))
	case !w.match.MatchString(m.Content):
		return fmt.Sprintf("to match %q", quote(w.Match))
	}
	return ""
}

// similarity scores how well a request matches the rule: one point per matching message,
// and a fraction for a common prefix.
func (r *rule) similarity(req abi.ChatRequest) float64 {
	n := 0.0
	if slices.ContainsFunc(req.Messages, r.matchesSystem) {
		n++
	}
	for i := 1; i <= min(len(r.Last), len(req.Messages)); i++ {
		w, m := &r.Last[len(r.Last)-i], req.Messages[len(req.Messages)-i]
		switch {
		case w.mismatch(m) == "":
			n++
		case w.Is != nil:
			n += float64(commonPrefix(*w.Is, m.Content)) / float64(len(*w.Is)+1)
		}
	}
	return n
}

// commonPrefix is the length of the common prefix in bytes.
func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func (r *rule) response(req abi.ChatRequest) abi.ChatResponse {
	out := abi.ChatResponse{Text: r.Text, Reasoning: r.Reasoning, Finish: r.Finish}
	said := len(r.Text) + len(r.Reasoning)
	for i, c := range r.Calls {
		call := abi.ChatCall{ID: c.ID, Name: c.Name, Arguments: cmp.Or(c.Arguments, "{}")}
		call.ID = cmp.Or(call.ID, fmt.Sprintf("call_%d_%d", len(req.Messages), i))
		out.ToolCalls = append(out.ToolCalls, call)
		said += len(call.Name) + len(call.Arguments)
	}
	if out.Finish == "" {
		out.Finish = abi.FinishStop
		if len(r.Calls) > 0 {
			out.Finish = abi.FinishToolCalls
		}
	}
	if u := r.Usage; u != nil {
		out.Usage = abi.ChatUsage{InputTokens: u.Input, CachedTokens: u.Cached, CacheWriteTokens: u.Written, OutputTokens: u.Output, ReasoningTokens: u.Reasoning}
	} else {
		out.Usage = abi.ChatUsage{InputTokens: estimateTokens(inputBytes(req)), OutputTokens: estimateTokens(said)}
	}
	return out
}

// estimateTokens is a rough number of tokens for a number of bytes.
func estimateTokens(bytes int) int64 { return int64(bytes+3) / 4 }

func inputBytes(req abi.ChatRequest) int {
	n := 0
	for _, m := range req.Messages {
		n += len(m.Content)
	}
	return n
}

package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"

	"skep/abi"
)

// script answers by the rules of a file: the first matching rule that is not used up.
type script struct {
	name  string
	file  string // without its directory, for errors
	rules []rule

	mu   sync.Mutex
	uses []int // by rule
}

// maxRules bounds a file of rules, in bytes.
const maxRules = 4 << 20

// openScript reads a file of rules, or a cassette when its name ends in .jsonl.
func openScript(s Spec) (Model, error) {
	if s.Cassette == "" {
		return nil, errors.New("a script takes a file of rules or recorded answers: set cassette")
	}
	if s.Mode == Record {
		return nil, fmt.Errorf("there is nothing to record of a script: the mode must be %s or %s", Auto, Replay)
	}
	if filepath.Ext(s.Cassette) == ".jsonl" {
		return openCassette(s)
	}
	f, err := openRegularFile(s.Cassette)
	if err != nil {
		return nil, cassetteError("%w", err)
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, maxRules+1))
	switch {
	case err != nil:
		return nil, cassetteError("%w", err)
	case len(raw) > maxRules:
		return nil, cassetteError("%s has more than %d bytes", filepath.Base(s.Cassette), maxRules)
	}
	rules, err := parseRules(raw)
	if err != nil {
		return nil, cassetteError("%s:%w", filepath.Base(s.Cassette), err)
	}
	return &script{name: s.Name, file: filepath.Base(s.Cassette), rules: rules, uses: make([]int, len(rules))}, nil
}

func parseRules(raw []byte) ([]rule, error) {
	var file struct {
		Rules []rule `toml:"rule"`
	}
	meta, err := toml.Decode(string(raw), &file)
	if err != nil {
		return nil, syntaxError(err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, unknownKey(raw, unknown[0])
	}
	if len(file.Rules) == 0 {
		return nil, atLine(0, "there is no [[rule]]")
	}
	for i := range file.Rules {
		if err := file.Rules[i].compile(); err != nil {
			return nil, atLine(ruleLine(raw, i, len(file.Rules)), "rule %d: %w", i+1, err)
		}
	}
	return file.Rules, nil
}

func (s *script) Chat(ctx context.Context, req abi.ChatRequest, _ string, emit func(abi.ChatPiece) error) (abi.ChatResponse, error) {
	if err := ctx.Err(); err != nil {
		return abi.ChatResponse{}, context.Cause(ctx)
	}
	r, err := s.matchRule(req)
	if err != nil {
		err.Name = s.name
		return abi.ChatResponse{}, err
	}
	resp := r.response(req)
	for _, p := range splitPieces(resp) {
		if emit == nil {
			break
		}
		if err := emit(p); err != nil {
			return abi.ChatResponse{}, err
		}
	}
	return resp, nil
}

// matchRule returns the rule for a request and counts its use.
func (s *script) matchRule(req abi.ChatRequest) (*rule, *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.rules {
		r := &s.rules[i]
		if r.mismatch(req) == "" && (r.Times == 0 || s.uses[i] < r.Times) {
			s.uses[i]++
			if r.Error != "" {
				return nil, newError(r.Error, "the script %s says so: %s", s.file, r.Text)
			}
			return r, nil
		}
	}
	return nil, s.unexpectedError(req)
}

// unexpectedError names the most similar rule.
func (s *script) unexpectedError(req abi.ChatRequest) *Error {
	best, score := 0, -1.0
	for i := range s.rules {
		if n := s.rules[i].similarity(req); n > score {
			best, score = i, n
		}
	}
	why := s.rules[best].mismatch(req)
	if why == "" {
		why = fmt.Sprintf("was used %d times, as often as it may be (times)", s.uses[best])
	}
	asked := "a request without messages"
	if n := len(req.Messages); n > 0 {
		asked = fmt.Sprintf("the %s's message %q", req.Messages[n-1].Role, quote(req.Messages[n-1].Content))
	}
	return newError(Unexpected, "the script %s has no answer to %s; the nearest is rule %d, which %s", s.file, asked, best+1, why)
}

// splitPieces splits an answer by words, as a model would stream it.
func splitPieces(resp abi.ChatResponse) (out []abi.ChatPiece) {
	if resp.Reasoning != "" {
		out = append(out, abi.ChatPiece{Reasoning: resp.Reasoning})
	}
	for _, w := range strings.SplitAfter(resp.Text, " ") {
		if w != "" {
			out = append(out, abi.ChatPiece{Delta: w})
		}
	}
	return out
}

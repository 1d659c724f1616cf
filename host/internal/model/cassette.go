package model

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"skep/abi"
)

// exchange is one line of a cassette. It has neither key nor header, and no
// price: that is by the list of whoever replays it.
type exchange struct {
	Request abi.ChatRequest  `json:"request"`
	Answer  abi.ChatResponse `json:"answer"`
	// Pieces are the lengths, in bytes, in which the answer came.
	Pieces []cut `json:"pieces,omitempty"`
}

// cut is a piece of an answer: so much of its text or of its reasoning.
type cut struct {
	Text      int `json:"text,omitempty"`
	Reasoning int `json:"reasoning,omitempty"`
}

// maxExchange bounds a line of a cassette, in bytes.
const maxExchange = 32 << 20

// replay answers from a cassette. The same request gets its answers in the order
// in which they were recorded, each once. Where the cassette stands in for a key that
// is not there, the answers begin again behind the last: a host goes on serving.
type replay struct {
	name, file string
	remedy     string // what to do about a request that was not recorded
	again      bool   // the answers begin again
	recorded   []exchange
	likes      []likeness // of each request

	had map[string][]int // by digest, what there is

	mu   sync.Mutex
	next map[string][]int // by digest, what was not played
}

func openReplay(s Spec) (*replay, error) {
	f, err := openFile(s.Cassette)
	if err != nil {
		return nil, ofCassette("%w", err)
	}
	defer func() { _ = f.Close() }()
	r := &replay{name: s.Name, file: filepath.Base(s.Cassette), remedy: remedy(s), again: s.Mode == Auto && s.Provider != Script, next: map[string][]int{}, had: map[string][]int{}}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxExchange)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := r.add(lines.Bytes()); err != nil {
			return nil, ofCassette("%s:%d: %w", r.file, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, ofCassette("%s: %w", r.file, err)
	}
	if len(r.recorded) == 0 {
		return nil, ofCassette("%s has no answers", r.file)
	}
	return r, nil
}

// openFile opens a cassette to be read. A pipe or a device would have no end, or no
// beginning.
func openFile(path string) (*os.File, error) {
	if is, err := os.Stat(path); err == nil && !is.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", filepath.Base(path))
	}
	return os.Open(path)
}

func (r *replay) add(line []byte) error {
	var e exchange
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	p, err := likenessOf(e.Request)
	if err != nil {
		return err
	}
	r.had[p.digest] = append(r.had[p.digest], len(r.recorded))
	r.next[p.digest] = r.had[p.digest]
	r.recorded, r.likes = append(r.recorded, e), append(r.likes, p)
	return nil
}

func (r *replay) Chat(ctx context.Context, req abi.ChatRequest, _ string, emit func(abi.ChatPiece) error) (abi.ChatResponse, error) {
	if ctx.Err() != nil {
		return abi.ChatResponse{}, context.Cause(ctx)
	}
	e, err := r.take(req)
	if err != nil {
		return abi.ChatResponse{}, err
	}
	if emit == nil {
		return e.Answer, nil
	}
	text, reasoning := e.Answer.Text, e.Answer.Reasoning
	for _, c := range append(e.Pieces, cut{Reasoning: len(reasoning)}, cut{Text: len(text)}) {
		var p abi.ChatPiece
		p.Reasoning, reasoning = split(reasoning, c.Reasoning)
		p.Delta, text = split(text, c.Text)
		if p.Delta == "" && p.Reasoning == "" {
			continue
		}
		if err := emit(p); err != nil {
			return abi.ChatResponse{}, err
		}
	}
	return e.Answer, nil
}

func split(text string, at int) (head, tail string) {
	at = min(max(at, 0), len(text))
	return text[:at], text[at:]
}

// take is the next answer to a request, with the ids of this run.
func (r *replay) take(req abi.ChatRequest) (exchange, error) {
	p, err := likenessOf(req)
	if err != nil {
		return exchange{}, r.named(fault(Refused, "the request is no JSON: %v", err))
	}
	r.mu.Lock()
	left := r.next[p.digest]
	if len(left) == 0 && r.again {
		left = r.had[p.digest]
	}
	if len(left) > 0 {
		r.next[p.digest] = left[1:]
	}
	r.mu.Unlock()
	if len(left) == 0 {
		return exchange{}, r.named(r.unexpected(p))
	}
	e, err := r.likes[left[0]].translate(r.recorded[left[0]], p)
	if err != nil {
		return exchange{}, r.named(fault(Malformed, "the cassette %s: %v", r.file, err))
	}
	return e, nil
}

func (r *replay) named(e *Error) *Error {
	e.Name = r.name
	return e
}

func (r *replay) unexpected(p likeness) *Error {
	if n := len(r.had[p.digest]); n > 0 {
		return fault(Unexpected, "the cassette %s has %d answers to this request, and all were played; %s", r.file, n, r.remedy)
	}
	best, same := 0, -1
	for i := range r.likes {
		if n := common(r.likes[i].plain, p.plain); n > same {
			best, same = i, n
		}
	}
	return fault(Unexpected, "the cassette %s has no answer to this request; %s. The nearest, number %d, differs at: recorded %q, now %q",
		r.file, r.remedy, best+1, around(r.likes[best].plain, same), around(p.plain, same))
}

// remedy is what to do where a cassette does not help.
func remedy(s Spec) string {
	const again = `record it anew (cassette_mode = "record")`
	switch {
	case s.Provider == Script:
		return "record it anew"
	case s.APIKey == "" && s.KeyVar != "":
		return "set " + s.KeyVar + " to ask the provider itself, or " + again
	case s.APIKey == "":
		return "give [models." + s.Name + "] an api_key to ask the provider itself, or " + again
	}
	return `ask the provider itself (cassette_mode = "auto"), or ` + again
}

// unescaped makes of a request's JSON a text for people.
var unescaped = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&", `\n`, " ", `\"`, `"`, `\\`, `\`)

// around is what stands at a place, with a little before it.
func around(text string, at int) string {
	return quote(unescaped.Replace(text[max(at-40, 0):min(at+80, len(text))]))
}

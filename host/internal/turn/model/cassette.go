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

// exchange is one line of a cassette. It has neither key nor header, and no price: the
// price depends on the configuration that replays it.
type exchange struct {
	Request abi.ChatRequest  `json:"request"`
	Answer  abi.ChatResponse `json:"answer"`
	// Pieces are the lengths of the pieces of the answer, in bytes.
	Pieces []pieceLength `json:"pieces,omitempty"`
}

// pieceLength is the length of the text or the reasoning in one piece.
type pieceLength struct {
	Text      int `json:"text,omitempty"`
	Reasoning int `json:"reasoning,omitempty"`
}

// maxExchange bounds a line of a cassette, in bytes.
const maxExchange = 32 << 20

// cassettePlayer answers from a cassette. Equal requests get their answers in the order of
// recording, each once. If the cassette stands in for a missing key, the answers start
// over after the last one, so that a host goes on serving.
type cassettePlayer struct {
	name, file string
	remedy     string // how to get an answer for a request that was not recorded
	loop       bool   // start over after the last answer
	recorded   []exchange
	keys       []requestKey // of each recorded request

	recordedAt map[string][]int // indexes of all answers, by digest

	mu       sync.Mutex
	unplayed map[string][]int // indexes of the answers not yet played, by digest
}

func openCassette(s Spec) (*cassettePlayer, error) {
	f, err := openRegularFile(s.Cassette)
	if err != nil {
		return nil, cassetteError("%w", err)
	}
	defer func() { _ = f.Close() }()
	r := &cassettePlayer{name: s.Name, file: filepath.Base(s.Cassette), remedy: remedy(s), loop: s.Mode == Auto && s.Provider != Script, unplayed: map[string][]int{}, recordedAt: map[string][]int{}}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxExchange)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := r.add(lines.Bytes()); err != nil {
			return nil, cassetteError("%s:%d: %w", r.file, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, cassetteError("%s: %w", r.file, err)
	}
	if len(r.recorded) == 0 {
		return nil, cassetteError("%s has no answers", r.file)
	}
	return r, nil
}

// openRegularFile opens a cassette. It refuses pipes and devices, which may never end.
func openRegularFile(path string) (*os.File, error) {
	if is, err := os.Stat(path); err == nil && !is.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", filepath.Base(path))
	}
	return os.Open(path)
}

func (r *cassettePlayer) add(line []byte) error {
	var e exchange
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	p, err := newRequestKey(e.Request)
	if err != nil {
		return err
	}
	r.recordedAt[p.digest] = append(r.recordedAt[p.digest], len(r.recorded))
	r.unplayed[p.digest] = r.recordedAt[p.digest]
	r.recorded, r.keys = append(r.recorded, e), append(r.keys, p)
	return nil
}

func (r *cassettePlayer) Chat(ctx context.Context, req abi.ChatRequest, _ string, emit func(abi.ChatPiece) error) (abi.ChatResponse, error) {
	if ctx.Err() != nil {
		return abi.ChatResponse{}, context.Cause(ctx)
	}
	e, err := r.nextExchange(req)
	if err != nil {
		return abi.ChatResponse{}, err
	}
	if emit == nil {
		return e.Answer, nil
	}
	text, reasoning := e.Answer.Text, e.Answer.Reasoning
	for _, c := range append(e.Pieces, pieceLength{Reasoning: len(reasoning)}, pieceLength{Text: len(text)}) {
		var p abi.ChatPiece
		p.Reasoning, reasoning = splitAt(reasoning, c.Reasoning)
		p.Delta, text = splitAt(text, c.Text)
		if p.Delta == "" && p.Reasoning == "" {
			continue
		}
		if err := emit(p); err != nil {
			return abi.ChatResponse{}, err
		}
	}
	return e.Answer, nil
}

func splitAt(text string, at int) (head, tail string) {
	at = min(max(at, 0), len(text))
	return text[:at], text[at:]
}

// nextExchange returns the next answer to a request, with the ids of this run.
func (r *cassettePlayer) nextExchange(req abi.ChatRequest) (exchange, error) {
	p, err := newRequestKey(req)
	if err != nil {
		return exchange{}, r.withModelName(newError(Refused, "the request is no JSON: %v", err))
	}
	r.mu.Lock()
	left := r.unplayed[p.digest]
	if len(left) == 0 && r.loop {
		left = r.recordedAt[p.digest]
	}
	if len(left) > 0 {
		r.unplayed[p.digest] = left[1:]
	}
	r.mu.Unlock()
	if len(left) == 0 {
		return exchange{}, r.withModelName(r.unexpectedError(p))
	}
	e, err := r.keys[left[0]].replaceIDs(r.recorded[left[0]], p)
	if err != nil {
		return exchange{}, r.withModelName(newError(Malformed, "the cassette %s: %v", r.file, err))
	}
	return e, nil
}

func (r *cassettePlayer) withModelName(e *Error) *Error {
	e.Name = r.name
	return e
}

func (r *cassettePlayer) unexpectedError(p requestKey) *Error {
	if n := len(r.recordedAt[p.digest]); n > 0 {
		return newError(Unexpected, "the cassette %s has %d answers to this request, and all were played; %s", r.file, n, r.remedy)
	}
	best, same := 0, -1
	for i := range r.keys {
		if n := commonPrefix(r.keys[i].normalized, p.normalized); n > same {
			best, same = i, n
		}
	}
	return newError(Unexpected, "the cassette %s has no answer to this request; %s. The nearest, number %d, differs at: recorded %q, now %q",
		r.file, r.remedy, best+1, excerpt(r.keys[best].normalized, same), excerpt(p.normalized, same))
}

// remedy is how the user gets an answer for a request that was not recorded.
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

// unescaped makes the JSON of a request readable.
var unescaped = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&", `\n`, " ", `\"`, `"`, `\\`, `\`)

// excerpt returns the text around an offset.
func excerpt(text string, at int) string {
	return quote(unescaped.Replace(text[max(at-40, 0):min(at+80, len(text))]))
}

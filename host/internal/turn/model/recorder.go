package model

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"skep/abi"
)

// recorder calls a model and appends each exchange to a cassette.
type recorder struct {
	m          Model
	name, path string

	mu sync.Mutex // one line at a time
}

// openRecorder fails early if the file cannot be written, instead of after the first paid
// answer.
func openRecorder(s Spec, m Model) (*recorder, error) {
	r := &recorder{m: m, name: s.Name, path: s.Cassette}
	if err := r.append(nil); err != nil {
		return nil, cassetteError("%w", err)
	}
	return r, nil
}

func (r *recorder) Chat(ctx context.Context, req abi.ChatRequest, key string, emit func(abi.ChatPiece) error) (abi.ChatResponse, error) {
	e := exchange{Request: req}
	hand := emit
	if emit != nil {
		hand = func(p abi.ChatPiece) error {
			e.Pieces = append(e.Pieces, pieceLength{Text: len(p.Delta), Reasoning: len(p.Reasoning)})
			return emit(p)
		}
	}
	resp, err := r.m.Chat(ctx, req, key, hand)
	if err != nil {
		return abi.ChatResponse{}, err
	}
	e.Answer = resp
	line, err := json.Marshal(e)
	if err == nil {
		err = r.append(append(line, '\n'))
	}
	if err != nil {
		return abi.ChatResponse{}, &Error{Kind: Auth, Name: r.name, Billable: true, Message: fmt.Sprintf("the answer cannot be recorded to %s: %v", filepath.Base(r.path), err)}
	}
	return resp, nil
}

func (r *recorder) append(line []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, err := os.OpenFile(r.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

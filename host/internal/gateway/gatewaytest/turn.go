package gatewaytest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"skep/host/internal/gateway"
)

// Agent answers one message, in a goroutine of its own. An empty outcome is Done. Its
// context ends when the exchange is cancelled or the runtime closed.
type Agent func(ctx context.Context, t *Turn) gateway.Answer

// Turn is what an [Agent] works on.
type Turn struct {
	Caller gateway.Caller
	Ask    gateway.Ask
	Agent  gateway.ExposedAgent
	// History are the earlier messages of the conversation.
	History []gateway.Ask
	e       *exchange
}

// Echo answers with the message's body.
func Echo(_ context.Context, t *Turn) gateway.Answer {
	return gateway.Answer{Subject: t.Ask.Subject, Body: t.Ask.Body}
}

// Progress emits progress: how much is done, from 0 to 1, negative if unknown.
func (t *Turn) Progress(text string, fraction float64) {
	p := gateway.Piece{Kind: gateway.Progress, Text: text}
	if fraction >= 0 {
		p.Fraction = &fraction
	}
	t.emit(p)
}

// Chunk emits a piece of the answer.
func (t *Turn) Chunk(text string) { t.emit(gateway.Piece{Kind: gateway.Chunk, Text: text}) }

func (t *Turn) emit(p gateway.Piece) {
	t.e.rt.mu.Lock()
	defer t.e.rt.mu.Unlock()
	if t.e.answer == nil {
		t.e.addPiece(p)
	}
}

// Question asks the caller and waits for the reply. failed is set for the error of a call.
func (t *Turn) Question(ctx context.Context, q gateway.Question) (text string, failed bool, err error) {
	if q.From == "" {
		q.From = t.e.x.Agent
	}
	asked := &question{Question: q, replied: make(chan reply, 1)}
	t.e.rt.mu.Lock()
	if t.e.answer == nil {
		t.e.questions = append(t.e.questions, asked)
		a, _ := t.e.now()
		t.e.addPiece(gateway.Piece{Kind: gateway.Asked, Answer: &a})
	}
	t.e.rt.mu.Unlock()
	select {
	case r := <-asked.replied:
		return r.text, r.failed, nil
	case <-ctx.Done():
		return "", false, context.Cause(ctx)
	}
}

// Part keeps a blob for the answer.
func (t *Turn) Part(name, mediaType string, data []byte) gateway.PartRef {
	t.e.rt.mu.Lock()
	defer t.e.rt.mu.Unlock()
	ref := gateway.PartRef{Name: name, Type: mediaType, Size: int64(len(data)), Blob: sha256.Sum256(data)}
	t.e.rt.blobs[ref.Blob] = bytes.Clone(data)
	return ref
}

// Blob is gateway.Runtime's.
func (rt *Runtime) Blob(_ context.Context, x gateway.Exchange, ref gateway.PartRef) ([]byte, error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	e, err := rt.find(x)
	if err != nil {
		return nil, err
	}
	if e.answer != nil {
		for _, part := range e.answer.Parts {
			if part.Blob == ref.Blob {
				return bytes.Clone(rt.blobs[ref.Blob]), rt.failure("Blob")
			}
		}
	}
	return nil, fmt.Errorf("no such blob: %w", gateway.ErrUnknown)
}

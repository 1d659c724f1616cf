package skep

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"skep/sdk/go/internal/abi"
)

// Pending is an op that was started with [Turn.Submit], and its answer as far as
// it is not read yet. It serves one goroutine at a time, and only during its
// turn.
type Pending struct {
	turn   *Turn
	op     abi.Op
	handle int32 // 0 when nothing is open
	err    error // why there is nothing more to read; io.EOF at the end
	over   bool  // the reader has seen err
}

var _ io.ReadCloser = (*Pending)(nil)

// errClosed is what a Pending gives after it was closed before its end.
var errClosed = errors.New("skep: read of a closed Pending")

// Submit starts any op and does not wait for it; req is as for [Turn.Call]. If the
// host refuses, reading tells: a Pending is never nil, and there is one place for
// errors. Up to 64 may be open at once, of which 8 run beside each other.
func (t *Turn) Submit(op Op, req any) *Pending {
	p := &Pending{turn: t, op: abi.Op(op)}
	raw, err := encode(req)
	if err != nil {
		p.err = fmt.Errorf("%s: request: %w", op, err)
		return p
	}
	n := t.host.Submit(p.op, raw)
	if n < 0 {
		p.err = hostError(op.String(), abi.Code(-n), t.host.LastError())
		return p
	}
	p.handle = int32(n)
	return p
}

// Read gives the next bytes of the answer and waits until there are some. A piece
// has no boundaries of its own; a bufio.Scanner finds lines. The error is io.EOF
// at the end, or the op's [*Error], again at every Read.
func (p *Pending) Read(to []byte) (int, error) {
	if p.err == nil && len(to) == 0 {
		return 0, nil
	}
	if p.err == nil {
		n := p.turn.host.Read(p.handle, to)
		if n > 0 {
			return int(n), nil
		}
		p.err = io.EOF
		if n < 0 {
			p.err = hostError(Op(p.op).String(), abi.Code(-n), p.turn.host.LastError())
		}
		p.release()
	}
	p.over = true
	return 0, p.err
}

// Bytes reads the rest of the answer.
func (p *Pending) Bytes() ([]byte, error) { return io.ReadAll(p) }

// Answer reads the rest of the answer and decodes it, as [Turn.Call] does.
func (p *Pending) Answer(rsp any) error {
	body, err := p.Bytes()
	if err != nil || rsp == nil || len(body) == 0 {
		return err
	}
	if err := json.Unmarshal(body, rsp); err != nil {
		return fmt.Errorf("%s: answer: %w", Op(p.op), err)
	}
	return nil
}

// Chunks gives the answer as it comes, at most 16 KiB at a time, each valid until
// the next. Where the op fails, the last pair has the error. Leaving the loop
// early calls the op off.
func (p *Pending) Chunks() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		defer p.release()
		buf := make([]byte, 16<<10)
		for {
			n, err := p.Read(buf)
			if err == io.EOF {
				return
			}
			if !yield(buf[:n], err) || err != nil {
				p.over = true
				return
			}
		}
	}
}

// Close calls the op off if it still runs, and forgets its answer. It never
// fails; the end of the turn does the same.
func (p *Pending) Close() error {
	p.over = true
	p.release()
	return nil
}

// release gives the handle back.
func (p *Pending) release() {
	if p.handle != 0 {
		p.turn.host.Close(p.handle)
		p.handle = 0
	}
	if p.err == nil {
		p.err = errClosed
	}
}

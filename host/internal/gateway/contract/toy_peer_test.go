package contract_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"testing"

	"skep/host/internal/gateway/contract"
	"skep/host/internal/gateway/gatewaytest/toy/peer"
)

// peerProcess is a peer of the toy protocol in a process of its own.
type peerProcess struct {
	mu   sync.Mutex
	in   *json.Encoder
	last int
	// calls get the events of the calls that run.
	calls map[int]chan peer.Event
	// took and withdrew hear what the host sends.
	took     func(n int, line []byte)
	withdrew func(id string)
}

func startPeer(t testing.TB) *peerProcess {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env, cmd.Stderr = append(os.Environ(), peerEnv+"=1"), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &peerProcess{in: json.NewEncoder(in), calls: map[int]chan peer.Event{}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.read(out)
	}()
	t.Cleanup(func() {
		_ = in.Close()
		<-read
		_ = cmd.Wait()
	})
	return p
}

// read hands on the events of the process until it ends.
func (p *peerProcess) read(out io.Reader) {
	for dec := json.NewDecoder(out); ; {
		var e peer.Event
		if dec.Decode(&e) != nil {
			return
		}
		p.mu.Lock()
		call := p.calls[e.N]
		p.mu.Unlock()
		switch {
		case e.Came > 0:
			go p.took(e.Came, e.Line)
		case e.Withdrawn != "":
			p.withdrew(e.Withdrawn)
		case call != nil:
			call <- e
		}
	}
}

// events holds what a slow reader has not taken: the pipe must not stand still.
const events = 4096

// do sends a command. Its events come by a channel, if it is a call.
func (p *peerProcess) do(c peer.Command) (n int, got chan peer.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	c.N, got = p.last, make(chan peer.Event, events)
	p.calls[c.N] = got
	if err := p.in.Encode(c); err != nil {
		got <- peer.Event{End: true, Error: err.Error()}
	}
	return c.N, got
}

func (p *peerProcess) forget(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, n)
}

// call makes a request and hands its status, and then each line of the response to a
// function; after its error no more.
func (p *peerProcess) call(ctx context.Context, method, url, token string, body []byte, each func(int, []byte) error) (status int, err error) {
	n, got := p.do(peer.Command{Do: "call", Method: method, URL: url, Token: token, Body: body})
	defer p.forget(n)
	for {
		select {
		case e := <-got:
			if e.End && e.Error != "" {
				return e.Status, errors.Join(err, errors.New(e.Error))
			}
			if e.End {
				return e.Status, err
			}
			if err == nil {
				err = each(e.Status, e.Line)
			}
		case <-ctx.Done():
			p.do(peer.Command{Do: "leave", Of: n})
			return 0, context.Cause(ctx)
		}
	}
}

// serve lets the process listen and returns its address.
func (p *peerProcess) serve(t testing.TB, address string) string {
	t.Helper()
	n, got := p.do(peer.Command{Do: "serve", Address: address})
	defer p.forget(n)
	e := <-got
	if e.Error != "" {
		t.Fatal(e.Error)
	}
	return e.Address
}

// stop ends the listener and its connections.
func (p *peerProcess) stop() {
	n, got := p.do(peer.Command{Do: "stop"})
	defer p.forget(n)
	<-got
}

func (p *peerProcess) onMessage(took func(n int, line []byte), withdrew func(id string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took, p.withdrew = took, withdrew
}

// toyForeign is a foreign agent that the peer serves.
type toyForeign struct {
	peer   *peerProcess
	handle contract.Handler

	mu      sync.Mutex
	working map[string]context.CancelFunc
}

// take handles a message. A handler that shows a piece answers by the stream.
func (f *toyForeign) take(n int, line []byte) {
	var l toyLine
	if err := json.Unmarshal(line, &l); err != nil {
		f.answer(n, http.StatusBadRequest, toyLine{Error: "invalid", Text: err.Error()}.encode())
		return
	}
	ctx, end := context.WithCancel(context.Background())
	f.mu.Lock()
	f.working[l.ID] = end
	f.mu.Unlock()
	m := contract.Message{ID: l.ID, Kind: contract.Kind(l.Kind), From: l.From, To: l.To, Thread: l.Thread, On: l.Re, Subject: l.Subject, Text: l.Text, Hops: l.Hops, Extra: l.X}
	if m.Kind == "ask" {
		m.Kind = contract.Ask
	}
	for _, p := range l.Parts {
		m.Parts = append(m.Parts, contract.Part(p))
	}
	streams := false
	s, err := f.handle(ctx, m, func(p contract.Piece) {
		if !streams {
			streams = true
			f.answer(n, http.StatusOK, toyLine{ID: l.ID, State: "working"}.encode())
		}
		piece := toyLine{Progress: &p.Progress}
		if p.Progress == "" {
			piece = toyLine{N: &p.N, Chunk: &p.Chunk}
		}
		f.peer.do(peer.Command{Do: "line", ID: l.ID, Body: piece.encode()})
	})
	var refused *contract.Refused
	switch {
	case errors.As(err, &refused):
		f.answer(n, http.StatusBadRequest, toyLine{Error: string(refused.Reason), Text: refused.Text}.encode())
	case err != nil:
		f.answer(n, http.StatusInternalServerError, toyLine{Error: "internal"}.encode())
	case streams:
		f.peer.do(peer.Command{Do: "line", ID: l.ID, Body: stateLine(l.ID, s)})
	default:
		f.answer(n, http.StatusOK, stateLine(l.ID, s))
	}
}

func (f *toyForeign) answer(n, status int, body []byte) {
	f.peer.do(peer.Command{Do: "answer", Of: n, Status: status, Body: body})
}

func (f *toyForeign) withdraw(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if end := f.working[id]; end != nil {
		end()
	}
}

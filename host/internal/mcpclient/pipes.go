package mcpclient

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/subprocess"
)

// Bounds of what goes through the pipes of a program.
const (
	writePatience = 30 * time.Second        // for one message
	endPatience   = time.Second             // for the end of a program that has closed its output
	endGrace      = 2 * time.Second         // of a program whose input was closed
	maxEmptyLines = 1000                    // in a row
	lastBytes     = 200                     // of a line that is no message, in an error
	frameRoom     = 64 << 10                // of a message beside its answer
	past          = -time.Duration(1 << 60) // a deadline that is over
)

// errFrame says that a message was too large.
var errFrame = errors.New("it sent more than one answer may have")

// pipes is a connection over the input and the output of a program.
type pipes struct {
	run  *subprocess.Running
	in   *bufio.Reader
	most int // bytes of one line

	mu      sync.Mutex // held by who writes
	hurried atomic.Bool
}

var _ mcp.Connection = (*pipes)(nil)

// connect starts a program or prepares requests.
func (s *Server) connect() (*wire, error) {
	w := &wire{open: map[jsonrpc.ID]*asked{}}
	if s.spec.URL != "" {
		return w, s.reach(w)
	}
	run, err := subprocess.Start(s.opt.Guard, subprocess.Line{
		Name: "mcp." + s.spec.Name, Argv: s.spec.Command, Dir: s.spec.Dir, Env: s.spec.Env, Logger: s.log, Scrub: s.scrub.Text,
	})
	if err != nil {
		return nil, err
	}
	w.inner = &pipes{run: run, in: bufio.NewReader(run.Output), most: s.maxFrame()}
	w.program = run
	return w, nil
}

// maxFrame bounds one message of the server, in bytes.
func (s *Server) maxFrame() int { return int(max(s.spec.MaxResult, maxList)) + frameRoom }

// Read implements [mcp.Connection].
func (p *pipes) Read(context.Context) (jsonrpc.Message, error) {
	for range maxEmptyLines {
		line, err := p.line()
		if err != nil {
			return nil, p.end(err)
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		m, err := jsonrpc.DecodeMessage(line)
		if err != nil {
			return nil, fmt.Errorf("it wrote what is no message of MCP to its stdout: %q", clip(string(line), lastBytes))
		}
		return m, nil
	}
	return nil, errFlood
}

// line reads up to the next newline.
func (p *pipes) line() (line []byte, err error) {
	for {
		part, err := p.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > p.most:
			return nil, fmt.Errorf("%w: a line of more than %d bytes", errFrame, p.most)
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// end waits for the end of a program that has closed its output, so that it can be
// told how it ended.
func (p *pipes) end(err error) error {
	if !errors.Is(err, errFrame) {
		late := time.NewTimer(endPatience)
		defer late.Stop()
		select {
		case <-p.run.Done():
		case <-late.C:
		}
		return io.EOF
	}
	return err
}

// Write implements [mcp.Connection]. What is written in part breaks the connection.
func (p *pipes) Write(ctx context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	_ = p.run.Input.SetWriteDeadline(time.Now().Add(writePatience)) // it may be closed; so says Write
	stop := context.AfterFunc(ctx, func() { _ = p.run.Input.SetWriteDeadline(time.Now().Add(past)) })
	n, err := p.run.Input.Write(append(text, '\n'))
	stop()
	if err != nil && n > 0 || err != nil && ctx.Err() == nil {
		_ = p.run.Input.Close()
		return fmt.Errorf("it does not read its stdin: %w", err)
	}
	return err
}

// Close implements [mcp.Connection].
func (p *pipes) Close() error {
	if p.hurried.Load() {
		return p.run.Close(0)
	}
	return p.run.Close(endGrace)
}

// hurry lets Close give the program no time: it does not behave.
func (p *pipes) hurry() { p.hurried.Store(true) }

// SessionID implements [mcp.Connection].
func (p *pipes) SessionID() string { return "" }

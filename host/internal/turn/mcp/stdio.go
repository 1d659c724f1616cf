package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/turn/process"
)

// Limits of the pipes of a program.
const (
	writeTimeout    = 30 * time.Second        // for one message
	exitTimeout     = 5 * time.Second         // for the exit of a program that has closed a pipe
	closeGrace      = 2 * time.Second         // for the exit of a program whose input was closed
	maxEmptyLines   = 1000                    // in a row
	maxQuotedLine   = 200                     // of a line that is no message, in an error
	frameOverhead   = 64 << 10                // of a message, beside the result in it
	expiredDeadline = -time.Duration(1 << 60) // relative to now
)

// errFrame reports a message that is too large.
var errFrame = errors.New("it sent more than one answer may have")

// stdioConn is a connection over the standard input and output of a program
// (https://modelcontextprotocol.io/specification/2025-06-18/basic/transports#stdio).
type stdioConn struct {
	program *process.Running
	in      *bufio.Reader
	maxLine int // bytes

	mu   sync.Mutex // held while writing
	kill atomic.Bool
}

var _ sdk.Connection = (*stdioConn)(nil)

// connect starts the program, or prepares the HTTP client.
func (s *Server) connect() (*filteredConn, error) {
	w := &filteredConn{pending: map[jsonrpc.ID]*pendingRequest{}}
	if s.spec.URL != "" {
		return w, s.connectHTTP(w)
	}
	run, err := process.Start(s.opt.Guard, process.CommandLine{
		Name: "mcp." + s.spec.Name, Argv: s.spec.Command, Dir: s.spec.Dir, Env: s.spec.Env, Logger: s.log, Scrub: s.scrub.Text,
	})
	if err != nil {
		return nil, err
	}
	w.inner = &stdioConn{program: run, in: bufio.NewReader(run.Output), maxLine: s.maxFrame()}
	w.program = run
	return w, nil
}

// maxFrame bounds one message of the server, in bytes.
func (s *Server) maxFrame() int { return int(max(s.spec.MaxResult, maxList)) + frameOverhead }

// Read implements [sdk.Connection].
func (p *stdioConn) Read(context.Context) (jsonrpc.Message, error) {
	for range maxEmptyLines {
		line, err := p.readLine()
		if err != nil {
			return nil, p.waitExit(err)
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		m, err := jsonrpc.DecodeMessage(line)
		if err != nil {
			return nil, fmt.Errorf("it wrote what is no message of MCP to its stdout: %q", sanitize(string(line), maxQuotedLine))
		}
		return m, nil
	}
	return nil, errUnsolicited
}

// readLine reads up to the next newline.
func (p *stdioConn) readLine() (line []byte, err error) {
	for {
		part, err := p.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > p.maxLine:
			return nil, fmt.Errorf("%w: a line of more than %d bytes", errFrame, p.maxLine)
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// waitExit waits for the exit of a program that has closed its output, so that the error
// can explain how it ended.
func (p *stdioConn) waitExit(err error) error {
	if !errors.Is(err, errFrame) {
		p.hasExited()
		return io.EOF
	}
	return err
}

// hasExited reports whether a program that has closed a pipe exits soon.
func (p *stdioConn) hasExited() bool {
	late := time.NewTimer(exitTimeout)
	defer late.Stop()
	select {
	case <-p.program.Done():
		return true
	case <-late.C:
		return false
	}
}

// Write implements [sdk.Connection]. A partial write breaks the connection.
func (p *stdioConn) Write(ctx context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	_ = p.program.Input.SetWriteDeadline(time.Now().Add(writeTimeout)) // if the pipe is closed, Write fails
	stop := context.AfterFunc(ctx, func() { _ = p.program.Input.SetWriteDeadline(time.Now().Add(expiredDeadline)) })
	n, err := p.program.Input.Write(append(text, '\n'))
	stop()
	if err != nil && n > 0 || err != nil && ctx.Err() == nil {
		_ = p.program.Input.Close()
		if errors.Is(err, syscall.EPIPE) && p.hasExited() {
			return io.EOF // as for Read, which may come later
		}
		return fmt.Errorf("it does not read its stdin: %w", err)
	}
	return err
}

// Close implements [sdk.Connection].
func (p *stdioConn) Close() error {
	if p.kill.Load() {
		return p.program.Close(0)
	}
	return p.program.Close(closeGrace)
}

// killOnClose makes Close kill the program without a grace period.
func (p *stdioConn) killOnClose() { p.kill.Store(true) }

// SessionID implements [sdk.Connection].
func (p *stdioConn) SessionID() string { return "" }

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Limits of the data that a server sends unsolicited between two answers.
const (
	maxUnsolicited      = 10_000
	maxUnsolicitedBytes = 32 << 20
	refuseTimeout       = 10 * time.Second
)

// Methods that this package handles.
const (
	methodInitialize  = "initialize"
	methodPing        = "ping"
	methodListTools   = "tools/list"
	methodToolChanged = "notifications/tools/list_changed"
)

// pendingRequest is a request whose raw answer is kept: the library rounds numbers to 53
// bits and refuses parts of answers that are newer than it is.
type pendingRequest struct {
	maxResult int64 // bytes; larger answers are dropped
	id        jsonrpc.ID
	result    json.RawMessage
	size      int // of the answer, kept or not
	// sent is set if the server may have the request: it did not answer that it does not have the
	// session.
	sent bool
}

type pendingKey struct{}

// program is a program that was started for a session.
type program interface {
	// Ended explains how the program ended, LastWords quotes its last output.
	Ended() string
	LastOutput() string
}

// filteredConn is a connection between the library and a server. It passes on requested
// answers, and bounds everything else.
type filteredConn struct {
	inner sdk.Connection
	// onInitialized gets the protocol version of the server; may be nil.
	onInitialized func(version string)
	// program is the program behind the connection; nil for none.
	program program
	// toolsChanged is set once the server has announced a changed list of tools.
	toolsChanged atomic.Bool

	mu           sync.Mutex
	pending      map[jsonrpc.ID]*pendingRequest // by id; nil if the library reads the answer
	initializeID jsonrpc.ID
	failed       error
	network      *networkError // the last one; nil for none

	unsolicited, bytes int // used by Read alone
}

var _ sdk.Transport = (*filteredConn)(nil)

// errClosed marks a connection that this side has closed.
var errClosed = errors.New("the connection is closed")

var errUnsolicited = errors.New("it sends too much that it was not asked for")

// Connect implements [sdk.Transport]. The connection is already open.
func (w *filteredConn) Connect(context.Context) (sdk.Connection, error) { return w, nil }

// withPending marks the request of a context: its raw answer is kept in a.
func (w *filteredConn) withPending(ctx context.Context, a *pendingRequest) context.Context {
	return context.WithValue(ctx, pendingKey{}, a)
}

// forgetRequest stops waiting for an answer.
func (w *filteredConn) forgetRequest(a *pendingRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pending, a.id)
}

// Write implements [sdk.Connection].
func (w *filteredConn) Write(ctx context.Context, m jsonrpc.Message) error {
	var a *pendingRequest
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		w.mu.Lock()
		if a, ok = ctx.Value(pendingKey{}).(*pendingRequest); ok {
			a.id = r.ID
		}
		w.pending[r.ID] = a
		if r.Method == methodInitialize {
			w.initializeID = r.ID
		}
		w.mu.Unlock()
	}
	err := w.inner.Write(ctx, m)
	if a != nil {
		a.sent = !errors.Is(err, sdk.ErrSessionMissing)
	}
	if w.program != nil && errors.Is(err, io.EOF) {
		w.fail(err)
	}
	return err
}

// Read implements [sdk.Connection].
func (w *filteredConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := w.inner.Read(ctx)
		if err != nil {
			w.fail(err)
			return nil, err
		}
		switch m := m.(type) {
		case *jsonrpc.Response:
			if w.acceptResponse(m) {
				w.unsolicited, w.bytes = 0, 0
				return m, nil
			}
			w.unsolicited, w.bytes = w.unsolicited+1, w.bytes+len(m.Result)
		case *jsonrpc.Request:
			w.unsolicited, w.bytes = w.unsolicited+1, w.bytes+len(m.Params)
			w.handleRequest(m)
		}
		if w.unsolicited > maxUnsolicited || w.bytes > maxUnsolicitedBytes {
			w.fail(errUnsolicited)
			return nil, errUnsolicited
		}
	}
}

// acceptResponse stores the answer to a pending request, and gives the library an answer
// that it can read. It returns false for an unsolicited answer.
func (w *filteredConn) acceptResponse(m *jsonrpc.Response) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	a, waited := w.pending[m.ID]
	delete(w.pending, m.ID)
	switch {
	case !waited:
		return false
	case a == nil && m.ID == w.initializeID && w.onInitialized != nil:
		var hello sdk.InitializeResult
		if json.Unmarshal(m.Result, &hello) == nil {
			w.onInitialized(hello.ProtocolVersion)
		}
	case a == nil || m.Error != nil:
	default:
		if a.size = len(m.Result); int64(a.size) <= a.maxResult {
			a.result = m.Result
		}
		m.Result = json.RawMessage(`{"tools":[],"content":[]}`)
	}
	return true
}

// handleRequest handles a request or notification of the server.
func (w *filteredConn) handleRequest(m *jsonrpc.Request) {
	if !m.IsCall() {
		if m.Method == methodToolChanged {
			w.toolsChanged.Store(true)
		}
		return
	}
	answer := &jsonrpc.Response{ID: m.ID, Result: json.RawMessage("{}")}
	if m.Method != methodPing {
		answer.Result, answer.Error = nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client answers ping alone"}
	}
	ctx, cancel := context.WithTimeout(context.Background(), refuseTimeout)
	defer cancel()
	if err := w.inner.Write(ctx, answer); err != nil {
		w.fail(err)
	}
}

// Close implements [sdk.Connection].
func (w *filteredConn) Close() error {
	if p, ok := w.inner.(*stdioConn); ok && w.broken() {
		p.killOnClose()
	}
	w.fail(errClosed)
	return w.inner.Close()
}

// SessionID implements [sdk.Connection].
func (w *filteredConn) SessionID() string { return w.inner.SessionID() }

// fail marks the connection as broken. The first reason counts.
func (w *filteredConn) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		w.failed = err
	}
}

// noteNetwork notes an error of the network.
func (w *filteredConn) noteNetwork(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := (*networkError)(nil); errors.As(err, &e) {
		w.network = e
	}
}

// networkError is the last error of the network, nil for none.
func (w *filteredConn) networkError() *networkError {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.network
}

func (w *filteredConn) broken() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed != nil
}

// tooLarge reports whether the connection broke because a message was too large.
func (w *filteredConn) tooLarge() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Is(w.failed, errFrame)
}

// failureReason explains why the connection broke; empty if it has not, or was closed on
// this side.
func (w *filteredConn) failureReason() string {
	w.mu.Lock()
	failed := w.failed
	w.mu.Unlock()
	if failed == nil || errors.Is(failed, errClosed) {
		return ""
	}
	return w.failureText(failed.Error())
}

// failureText explains how the program ended, if it did, and otherwise why the connection
// broke.
func (w *filteredConn) failureText(otherwise string) string {
	w.mu.Lock()
	failed := w.failed
	w.mu.Unlock()
	if failed == nil || errors.Is(failed, errClosed) {
		return sanitize(otherwise, maxText)
	}
	if errors.Is(failed, io.EOF) && w.program != nil {
		if how := w.program.Ended(); how != "" {
			return how
		}
	}
	return sanitize(fmt.Sprint(failed), maxText)
}

package mcpclient

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
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of what a server sends without having been asked, from one answer to the
// next.
const (
	maxUnasked      = 10_000
	maxUnaskedBytes = 32 << 20
	refusePatience  = 10 * time.Second
)

// Methods that are known here.
const (
	methodInitialize  = "initialize"
	methodPing        = "ping"
	methodListTools   = "tools/list"
	methodToolChanged = "notifications/tools/list_changed"
)

// asked is a request whose answer is kept as it came: the library turns numbers
// into ones with 53 bits and refuses answers with parts that are newer than it is.
type asked struct {
	most   int64 // bytes of the answer that are kept
	id     jsonrpc.ID
	result json.RawMessage
	size   int // of the answer, kept or not
}

type askedKey struct{}

// program is a program that was started for a session.
type program interface {
	// Ended says how it has ended, LastWords what it said last.
	Ended() string
	LastWords() string
}

// wire is a connection between the library and a server. It lets through what was
// asked for, and bounds the rest.
type wire struct {
	inner mcp.Connection
	// greeted is told the version of the protocol that the server speaks; may be nil.
	greeted func(version string)
	// program is what is behind it; nil for none.
	program program
	// changed says that the server has told of another list of tools.
	changed atomic.Bool

	mu     sync.Mutex
	open   map[jsonrpc.ID]*asked // what is waited for; nil where the library reads the answer
	hello  jsonrpc.ID
	failed error

	unasked, bytes int // Read's
}

var _ mcp.Transport = (*wire)(nil)

// errClosed marks a connection that this side has closed.
var errClosed = errors.New("the connection is closed")

var errFlood = errors.New("it sends too much that it was not asked for")

// Connect implements [mcp.Transport]: it is connected already.
func (w *wire) Connect(context.Context) (mcp.Connection, error) { return w, nil }

// asking marks the request of a context as one whose answer is kept.
func (w *wire) asking(ctx context.Context, a *asked) context.Context {
	return context.WithValue(ctx, askedKey{}, a)
}

// forget ends the waiting for an answer.
func (w *wire) forget(a *asked) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, a.id)
}

// Write implements [mcp.Connection].
func (w *wire) Write(ctx context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		w.mu.Lock()
		a, ok := ctx.Value(askedKey{}).(*asked)
		if ok {
			a.id = r.ID
		}
		w.open[r.ID] = a
		if r.Method == methodInitialize {
			w.hello = r.ID
		}
		w.mu.Unlock()
	}
	return w.inner.Write(ctx, m)
}

// Read implements [mcp.Connection].
func (w *wire) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := w.inner.Read(ctx)
		if err != nil {
			w.fail(err)
			return nil, err
		}
		switch m := m.(type) {
		case *jsonrpc.Response:
			if w.answered(m) {
				w.unasked, w.bytes = 0, 0
				return m, nil
			}
			w.unasked, w.bytes = w.unasked+1, w.bytes+len(m.Result)
		case *jsonrpc.Request:
			w.unasked, w.bytes = w.unasked+1, w.bytes+len(m.Params)
			w.told(m)
		}
		if w.unasked > maxUnasked || w.bytes > maxUnaskedBytes {
			w.fail(errFlood)
			return nil, errFlood
		}
	}
}

// answered keeps an answer that was waited for, and leaves the library one that it
// can read. Any other is nobody's.
func (w *wire) answered(m *jsonrpc.Response) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	a, waited := w.open[m.ID]
	delete(w.open, m.ID)
	switch {
	case !waited:
		return false
	case a == nil && m.ID == w.hello && w.greeted != nil:
		var hello mcp.InitializeResult
		if json.Unmarshal(m.Result, &hello) == nil {
			w.greeted(hello.ProtocolVersion)
		}
	case a == nil || m.Error != nil:
	default:
		if a.size = len(m.Result); int64(a.size) <= a.most {
			a.result = m.Result
		}
		m.Result = json.RawMessage(`{"tools":[],"content":[]}`)
	}
	return true
}

// told does what is to be done about a message that is no answer.
func (w *wire) told(m *jsonrpc.Request) {
	if !m.IsCall() {
		if m.Method == methodToolChanged {
			w.changed.Store(true)
		}
		return
	}
	answer := &jsonrpc.Response{ID: m.ID, Result: json.RawMessage("{}")}
	if m.Method != methodPing {
		answer.Result, answer.Error = nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client answers ping alone"}
	}
	ctx, cancel := context.WithTimeout(context.Background(), refusePatience)
	defer cancel()
	if err := w.inner.Write(ctx, answer); err != nil {
		w.fail(err)
	}
}

// Close implements [mcp.Connection].
func (w *wire) Close() error {
	if p, ok := w.inner.(*pipes); ok && w.broken() {
		p.hurry()
	}
	w.fail(errClosed)
	return w.inner.Close()
}

// SessionID implements [mcp.Connection].
func (w *wire) SessionID() string { return w.inner.SessionID() }

// fail marks the connection as broken; the first reason counts.
func (w *wire) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		w.failed = err
	}
}

func (w *wire) broken() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed != nil
}

// tooLarge reports whether it broke over the size of a message.
func (w *wire) tooLarge() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Is(w.failed, errFrame)
}

// reason says why it broke; empty while it has not, and where it was closed.
func (w *wire) reason() string {
	w.mu.Lock()
	failed := w.failed
	w.mu.Unlock()
	if failed == nil || errors.Is(failed, errClosed) {
		return ""
	}
	return w.why(failed.Error())
}

// why puts how the program has ended, where that is so, in the place of what the
// connection has to say.
func (w *wire) why(otherwise string) string {
	w.mu.Lock()
	failed := w.failed
	w.mu.Unlock()
	if failed == nil || errors.Is(failed, errClosed) {
		return clip(otherwise, maxText)
	}
	if errors.Is(failed, io.EOF) && w.program != nil {
		if how := w.program.Ended(); how != "" {
			return how
		}
	}
	return clip(fmt.Sprint(failed), maxText)
}

package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"skep/host/client"
)

// bridge carries the messages of one MCP client to a host and back. Older clients have a
// session: the bridge opens it again when the host has ended it, as after idle time or a
// restart.
type bridge struct {
	client *client.Client
	swarm  string
	// explain is the text for an error of the host, with what to change.
	explain func(error) string
	places  chan struct{} // of requests that run at once

	out lineWriter

	mu sync.Mutex
	// opening is the client's own initialize; session and version are what it led to.
	opening          json.RawMessage
	session, version string
	running          map[string]context.CancelFunc // by the id of the request
}

// atOnce is how many requests of a client run at once.
const atOnce = 64

func newBridge(c *client.Client, out io.Writer, explain func(error) string) *bridge {
	return &bridge{client: c, out: lineWriter{out: out}, explain: explain, places: make(chan struct{}, atOnce), running: map[string]context.CancelFunc{}}
}

// rpc is what the bridge reads of a JSON-RPC message.
type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		URI       string          `json:"uri"`
		RequestID json.RawMessage `json:"requestId"`
		Meta      struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
	Result struct {
		Version string `json:"protocolVersion"`
	} `json:"result"`
}

// serve carries messages until there are none, and ends the session.
func (b *bridge) serve(ctx context.Context, lines func(context.Context, func([]byte)) error) error {
	calls, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	err := lines(ctx, func(line []byte) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			return
		}
		var m rpc
		if err := json.Unmarshal(line, &m); err != nil {
			b.fail(nil, -32700, "the line is no JSON-RPC message")
			return
		}
		if m.ID == nil || m.Method == "" || m.Method == "initialize" {
			b.carry(calls, m, line)
			return
		}
		select {
		case b.places <- struct{}{}:
		default:
			b.fail(m.ID, -32000, "too many requests run at once")
			return
		}
		call, end := b.begin(calls, m)
		running.Go(func() {
			b.carry(call, m, line)
			end()
			<-b.places
		})
	})
	if err != nil {
		cancel()
	}
	running.Wait()
	b.end(context.WithoutCancel(ctx))
	return err
}

// begin makes a request one that can be cancelled.
func (b *bridge) begin(ctx context.Context, m rpc) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running[string(m.ID)] = cancel
	return ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.running, string(m.ID))
		cancel()
	}
}

// end ends the session, if there is one. The host ends it by itself where this fails.
func (b *bridge) end(ctx context.Context) {
	if b.session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_ = b.client.EndMCP(ctx, b.swarm, b.session)
}

// carry sends a message and writes what answers it. Without a session a request is
// cancelled by closing its connection.
func (b *bridge) carry(ctx context.Context, m rpc, message json.RawMessage) {
	if m.Method == "notifications/cancelled" && b.current() == "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		if cancel := b.running[string(m.Params.RequestID)]; cancel != nil {
			cancel()
		}
		return
	}
	session := b.current()
	err := b.try(ctx, m, message)
	var refused *client.Error
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound && session != "" && m.Method != "initialize" {
		if err = b.reopen(ctx, session); err == nil {
			err = b.try(ctx, m, message)
		}
	}
	if err != nil && ctx.Err() == nil && m.ID != nil && m.Method != "" {
		b.fail(m.ID, -32000, b.explain(err))
	}
}

func (b *bridge) current() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.session
}

// try sends a message once.
func (b *bridge) try(ctx context.Context, m rpc, message json.RawMessage) error {
	answers, err := b.client.MCP(ctx, b.swarm, b.header(m), message)
	if err != nil {
		return err
	}
	defer func() { _ = answers.Close() }()
	for {
		answer, err := answers.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if m.Method == "initialize" {
			b.opened(answers.Header, message, answer)
		}
		b.out.write(answer)
	}
}

// header is what the transport wants to see of a message besides its body.
func (b *bridge) header(m rpc) http.Header {
	h := http.Header{}
	if m.Params.Meta.Version != "" {
		h.Set("Mcp-Protocol-Version", m.Params.Meta.Version)
		h.Set("Mcp-Method", m.Method)
		if name := cmp.Or(m.Params.Name, m.Params.URI); name != "" {
			h.Set("Mcp-Name", name)
		}
		return h
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session != "" && m.Method != "initialize" {
		h.Set("Mcp-Session-Id", b.session)
		h.Set("Mcp-Protocol-Version", b.version)
	}
	return h
}

// opened remembers the session that an initialize has opened.
func (b *bridge) opened(h http.Header, message, answer json.RawMessage) {
	var m rpc
	if json.Unmarshal(answer, &m) != nil || m.Result.Version == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opening, b.session, b.version = message, h.Get("Mcp-Session-Id"), m.Result.Version
}

// reopen opens a session in place of one that the host no longer has, once for all
// requests that find it gone. The client does not see it.
func (b *bridge) reopen(ctx context.Context, gone string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session != gone {
		return nil
	}
	answers, err := b.client.MCP(ctx, b.swarm, http.Header{}, b.opening)
	if err != nil {
		return err
	}
	defer func() { _ = answers.Close() }()
	if _, err := answers.Next(); err != nil {
		return err
	}
	b.session = answers.Header.Get("Mcp-Session-Id")
	h := http.Header{"Mcp-Session-Id": {b.session}, "Mcp-Protocol-Version": {b.version}}
	done, err := b.client.MCP(ctx, b.swarm, h, json.RawMessage(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	if err != nil {
		return err
	}
	return done.Close()
}

// fail answers a request that the host did not.
func (b *bridge) fail(id json.RawMessage, code int, text string) {
	raw, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": text},
	})
	if err == nil {
		b.out.write(raw)
	}
}

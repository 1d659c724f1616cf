package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
)

// MCPMessages are the messages with which the host's MCP gateway answers one message.
type MCPMessages struct {
	// Header is the answer's.
	Header http.Header
	body   io.ReadCloser
	next   func() (json.RawMessage, error)
}

// Next waits for the next message. After the last it returns io.EOF.
func (m *MCPMessages) Next() (json.RawMessage, error) { return m.next() }

// Close drops the messages that were not read.
func (m *MCPMessages) Close() error { return m.body.Close() }

// MCP sends a JSON-RPC message to the MCP gateway, for the agents of one swarm or of all.
// An error in JSON-RPC is a message, whatever its status is.
func (c *Client) MCP(ctx context.Context, swarm string, header http.Header, message json.RawMessage) (*MCPMessages, error) {
	header = header.Clone()
	header.Set("Accept", "application/json, text/event-stream")
	k := call{method: http.MethodPost, path: mcpPath(swarm), header: header, body: message}
	rsp, err := c.request(ctx, k)
	if err != nil {
		return nil, c.final(err)
	}
	m := &MCPMessages{Header: rsp.Header, body: rsp.Body}
	kind, _, _ := mime.ParseMediaType(rsp.Header.Get("Content-Type"))
	switch {
	case kind == "text/event-stream" && rsp.StatusCode == http.StatusOK:
		m.next = messagesOf(newFrames(rsp.Body, c.opt.MaxEvent))
	case rsp.StatusCode == http.StatusAccepted:
		m.next = func() (json.RawMessage, error) { return nil, io.EOF }
	default:
		defer func() { _ = rsp.Body.Close() }()
		body, err := io.ReadAll(io.LimitReader(rsp.Body, c.opt.MaxResponse))
		if err != nil {
			return nil, c.final(&lost{err})
		}
		if m.next = single(body); m.next == nil {
			rsp.Body = io.NopCloser(bytes.NewReader(body))
			return nil, c.final(refusal(rsp))
		}
	}
	return m, nil
}

func mcpPath(swarm string) string {
	if swarm == "" {
		return "/mcp"
	}
	return "/mcp/" + url.PathEscape(swarm)
}

func messagesOf(events *frames) func() (json.RawMessage, error) {
	return func() (json.RawMessage, error) {
		f, err := events.next()
		return f.data, err
	}
}

// single reads a body that is one message; it is nil for another one.
func single(body []byte) func() (json.RawMessage, error) {
	var message struct {
		Version string `json:"jsonrpc"`
	}
	if json.Unmarshal(body, &message) != nil || message.Version == "" {
		return nil
	}
	read := false
	return func() (json.RawMessage, error) {
		if read {
			return nil, io.EOF
		}
		read = true
		return body, nil
	}
}

// EndMCP ends a session of the MCP gateway.
func (c *Client) EndMCP(ctx context.Context, swarm, session string) error {
	rsp, err := c.send(ctx, call{method: http.MethodDelete, path: mcpPath(swarm), header: http.Header{"Mcp-Session-Id": {session}}})
	if err != nil {
		return err
	}
	return rsp.Body.Close()
}

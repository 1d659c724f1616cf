package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	skep "skep/sdk/go"
)

// call is what a request asks for.
type call struct {
	Tool       string
	Parameters json.RawMessage
	// Permissions bound what the call may do; nil claims nothing and bounds nothing.
	Permissions []string
	// Silent: the asker wants no answer.
	Silent bool
}

// request is the body of a request: the payload of a tool_request, or the same with
// the short name tool.
type request struct {
	Type       string          `json:"message_type"`
	Payload    json.RawMessage `json:"payload"`
	Tool       string          `json:"tool"`
	ToolName   string          `json:"tool_name"`
	Parameters json.RawMessage `json:"parameters"`
	Context    struct {
		Permissions []string `json:"permissions"`
	} `json:"execution_context"`
	Callback *bool `json:"callback_required"`
}

// routing is what a gateway adds to a request.
type routing struct {
	Gateway struct {
		Capability string `json:"capability"`
		Parts      []struct {
			SHA256 string `json:"sha256"`
			Size   int    `json:"size"`
		} `json:"parts"`
	} `json:"gateway"`
}

// readCall reads a request. One that came for a capability, as MCP clients send it, has
// the arguments alone as its body. A body that is too long for a message is the request's part.
func readCall(t *skep.Turn) (call, error) {
	m, body := &t.Message, []byte(t.Message.Body)
	var routed routing
	if len(m.Routing) > 0 && json.Unmarshal(m.Routing, &routed) != nil {
		routed = routing{}
	}
	if parts := routed.Gateway.Parts; len(body) == 0 && len(parts) == 1 {
		if parts[0].Size > maxPart {
			return call{}, skep.Errorf(skep.Limit, "the request has %d bytes, at most %d", parts[0].Size, maxPart)
		}
		var err error
		if body, err = t.BlobGet(parts[0].SHA256); err != nil {
			return call{}, err
		}
	}
	if routed.Gateway.Capability != "" {
		return newCall(request{Tool: routed.Gateway.Capability, Parameters: json.RawMessage(body)})
	}
	var r request
	if err := decode(body, &r); err != nil {
		return call{}, skep.Errorf(skep.Invalid, `the body must be {"tool": NAME, "parameters": {…}}: %v`, err)
	}
	switch r.Type {
	case "":
	case "tool_request":
		inner := r.Payload
		if r = (request{}); decode(inner, &r) != nil || r.Type != "" {
			return call{}, skep.Errorf(skep.Invalid, "payload must be an object with tool_name and parameters")
		}
	default:
		return call{}, skep.Errorf(skep.Invalid, "message_type is %.100q; this agent takes tool_request", r.Type)
	}
	return newCall(r)
}

// Bounds of a request, in bytes: of the name of its action, which the answer repeats, and of all of
// it, where an action has 2 MiB.
const (
	maxName = 128
	maxPart = 2 << 20
)

func newCall(r request) (call, error) {
	c := call{Tool: r.Tool, Parameters: bytes.TrimSpace(r.Parameters), Permissions: r.Context.Permissions}
	c.Silent = r.Callback != nil && !*r.Callback
	switch {
	case r.Tool != "" && r.ToolName != "" && r.Tool != r.ToolName:
		return c, skep.Errorf(skep.Invalid, "tool and tool_name differ")
	case r.Tool == "" && r.ToolName == "":
		return c, skep.Errorf(skep.Invalid, "tool is missing: the name of the action to run")
	case r.Tool == "":
		c.Tool = r.ToolName
	}
	if n := len(c.Tool); n > maxName {
		return c, skep.Errorf(skep.Invalid, "tool has %d bytes, at most %d", n, maxName)
	}
	if len(c.Parameters) == 0 || string(c.Parameters) == "null" {
		c.Parameters = json.RawMessage("{}")
	}
	if c.Parameters[0] != '{' || !json.Valid(c.Parameters) {
		return c, skep.Errorf(skep.Invalid, "parameters must be an object")
	}
	return c, nil
}

// decode reads one JSON value and nothing after it. Members without a field pass.
func decode(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the object")
	}
	return nil
}

// permitted holds the caller's permissions against the effect of the action: they narrow what
// it may do, and never widen it.
func (c call) permitted(tools func() ([]skep.Tool, error)) error {
	if c.Permissions == nil {
		return nil
	}
	all, err := tools()
	if err != nil {
		return err
	}
	need := "write"
	if i := slices.IndexFunc(all, func(t skep.Tool) bool { return t.Name == c.Tool }); i >= 0 && all[i].Effect == "read" {
		need = "read"
	}
	if slices.Contains(c.Permissions, need) {
		return nil
	}
	return skep.Errorf(skep.Denied, "%s needs the permission %s, and execution_context.permissions has %s",
		c.Tool, need, orNone(strings.Join(c.Permissions, ", ")))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

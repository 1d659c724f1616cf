package abi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
)

// Descriptor says what a module is. It comes from the custom section
// [DescriptorSection] or from skep_describe, run without any grant.
type Descriptor struct {
	ABI     int    `json:"abi"`
	Name    string `json:"name"`
	Version string `json:"version"`

	Description string             `json:"description,omitempty"`
	Agents      []AgentDescriptor  `json:"agents,omitempty"`
	Actions     []ActionDescriptor `json:"actions,omitempty"`
	Requests    []Request          `json:"requests,omitempty"`
}

// AgentDescriptor is one agent a module can play.
type AgentDescriptor struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	Params       json.RawMessage `json:"params,omitempty"`
	Capabilities []Capability    `json:"capabilities,omitempty"`
	Roles        []string        `json:"roles,omitempty"`
	Capacity     int             `json:"capacity,omitempty"`
}

// Capability is one thing an agent can do, in a form other protocols can list.
type Capability struct {
	ID           string          `json:"id"`
	Version      string          `json:"version,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
}

// ActionDescriptor is one action a module exports.
type ActionDescriptor struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Timeout     string          `json:"timeout,omitempty"`
	Idempotent  bool            `json:"idempotent,omitempty"`
}

// Request is a grant the module asks for. Allow is a key of an agent's allow
// table in swarm.toml.
type Request struct {
	Allow    string          `json:"allow"`
	Value    json.RawMessage `json:"value,omitempty"`
	Reason   string          `json:"reason"`
	Optional bool            `json:"optional,omitempty"`
}

// MaxDescriptor is the largest descriptor the host reads, in bytes.
const MaxDescriptor = 256 << 10

var actionName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// ParseDescriptor decodes and checks a descriptor. Unknown members pass, so
// that an older host can read a newer module's descriptor.
func ParseDescriptor(raw []byte) (*Descriptor, error) {
	if len(raw) > MaxDescriptor {
		return nil, fmt.Errorf("descriptor of %d bytes, at most %d", len(raw), MaxDescriptor)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	var d Descriptor
	if err := dec.Decode(&d); err != nil {
		return nil, fmt.Errorf("descriptor: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("descriptor: more than one JSON value")
	}
	return &d, d.check()
}

func (d *Descriptor) check() error {
	if d.ABI != Version {
		return Mismatch("the descriptor", strconv.Itoa(d.ABI))
	}
	if d.Name == "" || d.Version == "" {
		return errors.New("descriptor: name and version are mandatory")
	}
	for _, a := range d.Actions {
		if !actionName.MatchString(a.Name) {
			return fmt.Errorf("descriptor: action name %q does not match %s", a.Name, actionName)
		}
	}
	for _, r := range d.Requests {
		if r.Allow == "" || r.Reason == "" {
			return errors.New("descriptor: every request names what it asks for (allow) and why (reason)")
		}
	}
	return nil
}

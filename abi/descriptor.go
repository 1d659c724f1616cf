package abi

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Descriptor describes a module. It comes from the custom section
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
	Constraints  json.RawMessage `json:"constraints,omitempty"`
}

// ActionDescriptor is one action a module exports.
type ActionDescriptor struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Timeout     string          `json:"timeout,omitempty"`
	Idempotent  bool            `json:"idempotent,omitempty"`
	// Effect is read for an action that changes nothing; else it is write, or empty.
	Effect string `json:"effect,omitempty"`
}

// Request is a grant the module asks for. Allow is a key of an agent's allow
// table in swarm.toml.
type Request struct {
	Allow    string          `json:"allow"`
	Value    json.RawMessage `json:"value,omitempty"`
	Reason   string          `json:"reason"`
	Optional bool            `json:"optional,omitempty"`
}

// Bounds of a descriptor, in bytes.
const (
	// MaxDescriptor is the largest descriptor the host reads.
	MaxDescriptor = 256 << 10
	// MaxDescription is the longest description, MaxReason the longest reason
	// of a request, and MaxWord the longest of all other texts.
	MaxDescription = 16 << 10
	MaxReason      = 1 << 10
	MaxWord        = 128

	maxDescriptorDepth = 64
)

// ParseDescriptor decodes and checks a descriptor. Names of members are exact.
// Unknown members pass, so that an older host can read a newer module's
// descriptor.
func ParseDescriptor(raw []byte) (*Descriptor, error) {
	d, err := parseDescriptor(raw)
	if err != nil {
		return nil, fmt.Errorf("descriptor: %w", err)
	}
	if d.ABI != Version {
		return nil, Mismatch("the descriptor", strconv.Itoa(d.ABI))
	}
	if err := d.check(); err != nil {
		return nil, fmt.Errorf("descriptor: %w", err)
	}
	return d, nil
}

// parseDescriptor decodes a descriptor of this version; of another one it tells
// the version alone.
func parseDescriptor(raw []byte) (*Descriptor, error) {
	if len(raw) > MaxDescriptor {
		return nil, fmt.Errorf("%d bytes, at most %d", len(raw), MaxDescriptor)
	}
	if Deeper(raw, maxDescriptorDepth) {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDescriptorDepth)
	}
	o, err := openObject(raw, "abi", "name", "version", "description", "agents", "actions", "requests")
	if err != nil {
		return nil, err
	}
	if path, twice := namedTwice(raw); twice {
		return nil, fmt.Errorf("%s is there twice", path)
	}
	d := &Descriptor{ABI: o.number("abi")}
	if *o.fault == nil && d.ABI == Version {
		d.read(o)
	}
	return d, *o.fault
}

func (d *Descriptor) read(o object) {
	d.Name, d.Version, d.Description = o.text("name"), o.text("version"), o.text("description")
	o.objects("agents", []string{"name", "description", "params", "capabilities", "roles", "capacity"}, func(o object) {
		a := AgentDescriptor{
			Name: o.text("name"), Description: o.text("description"), Params: o.raw("params"),
			Roles: o.texts("roles"), Capacity: o.number("capacity"),
		}
		o.objects("capabilities", []string{"id", "version", "description", "input_schema", "output_schema", "constraints"}, func(o object) {
			a.Capabilities = append(a.Capabilities, Capability{
				ID: o.text("id"), Version: o.text("version"), Description: o.text("description"),
				InputSchema: o.raw("input_schema"), OutputSchema: o.raw("output_schema"), Constraints: o.raw("constraints"),
			})
		})
		d.Agents = append(d.Agents, a)
	})
	o.objects("actions", []string{"name", "description", "parameters", "timeout", "idempotent", "effect"}, func(o object) {
		d.Actions = append(d.Actions, ActionDescriptor{
			Name: o.text("name"), Description: o.text("description"), Parameters: o.raw("parameters"),
			Timeout: o.text("timeout"), Idempotent: o.flag("idempotent"), Effect: o.text("effect"),
		})
	})
	o.objects("requests", []string{"allow", "value", "reason", "optional"}, func(o object) {
		d.Requests = append(d.Requests, Request{
			Allow: o.text("allow"), Value: o.raw("value"), Reason: o.text("reason"), Optional: o.flag("optional"),
		})
	})
}

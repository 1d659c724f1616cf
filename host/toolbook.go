package host

import (
	"skep/abi"
	"skep/host/internal/schema"
	"skep/host/internal/swarm"
)

// toolbook shows the runtime the MAIL tools as the schemas define them.
type toolbook struct{ set *schema.Set }

var _ swarm.Toolbook = (*toolbook)(nil)

// Tools lists every tool with its schema.
func (b *toolbook) Tools() []abi.Tool {
	var tools []abi.Tool
	for _, t := range b.set.Tools() {
		tools = append(tools, abi.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	return tools
}

// ToolArgs checks a call's arguments against the schema.
func (b *toolbook) ToolArgs(tool string, args []byte) error { return b.set.ToolArgs(tool, args) }

// Package spec owns the data that defines what skep speaks, so that programs
// carry it with them. It must not know what the data means: spec/mail is the
// model of it, host/internal/schema the judge by it.
package spec

import (
	"embed"
	"fmt"
)

//go:embed schema/*.json
var files embed.FS

// Names of the embedded schema documents, to be passed to [Schema].
const (
	// CoreSchema has the shapes of addresses and messages; its root is a message.
	CoreSchema = "core.json"
	// InterswarmSchema has the shape of the wrapper between swarms. It refers to
	// CoreSchema.
	InterswarmSchema = "interswarm.json"
	// ToolsSchema lists the MAIL tools: name, description and a schema of the
	// parameters, as a model is shown them.
	ToolsSchema = "tools.json"
)

// Schema returns a copy of the named document.
func Schema(name string) ([]byte, error) {
	b, err := files.ReadFile("schema/" + name)
	if err != nil {
		return nil, fmt.Errorf("no embedded schema %q: %w", name, err)
	}
	return b, nil
}

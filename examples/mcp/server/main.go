// Command server is an MCP server for a directory of notes, over stdio: a program to
// copy for a server of your own. It knows nothing of skep.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxNote bounds a note, in bytes.
const maxNote = 64 << 10

// Notes are the files NAME.md of a directory.
type Notes struct{ root *os.Root }

type (
	none struct{}
	name struct {
		Name string `json:"name" jsonschema:"the name of a note, as list_notes tells it"`
	}
	note struct {
		Name string `json:"name" jsonschema:"the name of the note"`
		Text string `json:"text" jsonschema:"what it says"`
	}
	names struct {
		Notes []string `json:"notes"`
	}
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: server DIRECTORY") // to stderr: stdout is for messages
	}
	root, err := os.OpenRoot(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	n := Notes{root}
	s := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1.0.0"}, nil)
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true}
	mcp.AddTool(s, &mcp.Tool{Name: "list_notes", Description: "List the names of all notes.", Annotations: reads}, n.list)
	mcp.AddTool(s, &mcp.Tool{Name: "read_note", Description: "Read one note.", Annotations: reads}, n.read)
	mcp.AddTool(s, &mcp.Tool{Name: "write_note", Description: "Write a note, in the place of one that has its name."}, n.write)
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}

func (n Notes) list(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, names, error) {
	dir, err := n.root.Open(".")
	if err != nil {
		return nil, names{}, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	all := names{Notes: []string{}}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".md"); ok && e.Type().IsRegular() {
			all.Notes = append(all.Notes, name)
		}
	}
	return nil, all, err
}

func (n Notes) read(_ context.Context, _ *mcp.CallToolRequest, a name) (*mcp.CallToolResult, any, error) {
	text, err := n.root.ReadFile(filepath.Join(".", a.Name+".md"))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil, fmt.Errorf("there is no note %q", a.Name)
	case err != nil:
		return nil, nil, err
	case len(text) > maxNote:
		return nil, nil, fmt.Errorf("the note %q is too long", a.Name)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil, nil
}

func (n Notes) write(_ context.Context, _ *mcp.CallToolRequest, a note) (*mcp.CallToolResult, any, error) {
	if len(a.Text) > maxNote {
		return nil, nil, fmt.Errorf("a note has at most %d bytes", maxNote)
	}
	if err := n.root.WriteFile(filepath.Join(".", a.Name+".md"), []byte(a.Text), 0o600); err != nil {
		return nil, nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "written"}}}, nil, nil
}

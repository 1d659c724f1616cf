package definition_test

import (
	"fmt"
	"os"
	"testing"

	"skep/host/internal/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m, notesProcess) }

// notesProcess is the process of the MCP server, see serveNotes.
func notesProcess() {
	dir := os.Getenv(notesEnv)
	if dir == "" {
		return
	}
	if err := serveNotes(dir); err != nil {
		fmt.Fprintln(os.Stderr, "notes:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

package wasm

import (
	"fmt"
	"strings"

	"skep/host/internal/turn"
)

// trapText renders a trap: where, what, and what the guest said last.
func trapText(name string, err error, said string) string {
	what, _, _ := strings.Cut(err.Error(), "\nwasm stack trace:")
	if _, after, ok := strings.Cut(what, "wasm error: "); ok {
		what = after
	}
	if said != "" {
		what += " (last words: " + said + ")"
	}
	return name + ": " + what
}

// isStackOverflow recognises the engine's own limit, which has no exported
// error.
func isStackOverflow(err error) bool {
	return strings.Contains(err.Error(), "stack overflow")
}

func stackExit(limit int64) *turn.Exit {
	return &turn.Exit{Kind: turn.ExitStack, Limit: turn.KeyStack,
		Message: fmt.Sprintf("went deeper than %d bytes of stack", limit)}
}

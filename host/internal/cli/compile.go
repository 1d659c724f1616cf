package cli

import (
	"context"

	"skep/host/internal/turn/wasm"
)

// compileCommand is how the program starts itself to compile a stranger's
// module, apart from the host and within limits. It is not for people.
const compileCommand = "__compile"

// compile is the child's side.
func (e Env) compile(ctx context.Context) int {
	return wasm.CompileChild(ctx, e.Stdin, e.Stderr, e.Args[1:])
}

// compiler is the command line of the child, empty where the path of the program
// is unknown.
func (a *app) compiler() []string {
	if a.env.Self == "" {
		return nil
	}
	return []string{a.env.Self, compileCommand}
}

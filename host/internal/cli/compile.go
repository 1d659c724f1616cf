package cli

import (
	"context"

	"skep/host/internal/sandbox"
)

// compileCommand is how the program starts itself to compile a stranger's
// module, apart from the host and within limits. It is not for people.
const compileCommand = "__compile"

// compile is the child's side.
func (e Env) compile(ctx context.Context) int {
	return sandbox.CompileChild(ctx, e.Stdin, e.Stderr, e.Args[1:])
}

// compiler is the command line of the child, empty where the program does not
// know its own file.
func (a *app) compiler() []string {
	if a.env.Self == "" {
		return nil
	}
	return []string{a.env.Self, compileCommand}
}

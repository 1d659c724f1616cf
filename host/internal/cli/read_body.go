package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// maxStdin is the largest body read from stdin, in bytes; the host has its own limit.
const maxStdin = 4 << 20

// readBody returns the text of an argument, or what is piped in; name is the argument's.
func (a *app) readBody(ctx context.Context, cmd *cobra.Command, name string, args []string) (string, error) {
	var text string
	var err error
	switch {
	case len(args) == 1 && args[0] != "-":
		text = args[0]
	case len(args) == 0 && a.env.StdinTerminal:
		example, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
		return "", usagef("%s needs a %s", path(cmd), name).help("give it as an argument, as in `%s`, or pipe it in", example)
	default:
		text, err = a.readStdin(ctx, name)
	}
	switch {
	case err != nil:
		return "", err
	case text == "":
		return "", usagef("the %s is empty", name)
	case !utf8.ValidString(text):
		return "", usagef("the %s is not UTF-8 text", name)
	}
	return text, nil
}

// readStdin reads to the end of stdin, less the last line break. An interrupted
// command leaves its read behind: a read cannot be interrupted.
func (a *app) readStdin(ctx context.Context, name string) (string, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(a.env.Stdin, maxStdin+1))
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return "", fmt.Errorf("read stdin: %w", r.err)
		}
		if len(r.text) > maxStdin {
			return "", usagef("the %s on stdin has more than %d bytes", name, maxStdin)
		}
		text := strings.TrimSuffix(string(r.text), "\n")
		return strings.TrimSuffix(text, "\r"), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

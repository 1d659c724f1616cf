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

// readBody returns the message's text: the argument, or what is piped in.
func (a *app) readBody(ctx context.Context, cmd *cobra.Command, args []string) (string, error) {
	var text string
	var err error
	switch {
	case len(args) == 1 && args[0] != "-":
		text = args[0]
	case len(args) == 0 && a.env.StdinTerminal:
		return "", usagef("%s needs a BODY", path(cmd)).help(
			`give it as an argument, %s "What is 6 times 7?", or pipe it in`, cmd.CommandPath())
	default:
		text, err = a.readStdin(ctx)
	}
	switch {
	case err != nil:
		return "", err
	case text == "":
		return "", usagef("the BODY is empty")
	case !utf8.ValidString(text):
		return "", usagef("the BODY is not UTF-8 text")
	}
	return text, nil
}

// readStdin reads to the end of stdin, less the last line break. An interrupted
// command leaves its read behind: a read cannot be interrupted.
func (a *app) readStdin(ctx context.Context) (string, error) {
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
			return "", usagef("the BODY on stdin has more than %d bytes", maxStdin)
		}
		text := strings.TrimSuffix(string(r.text), "\n")
		return strings.TrimSuffix(text, "\r"), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

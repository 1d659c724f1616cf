package cli

import (
	"context"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"skep/host/internal/gateway/acp/check"
	"skep/host/internal/gateway/acp/dsl"
)

const acpCheckHelp = `Check reads the declarations in FILE, and holds messages against them: each MESSAGE is a
file with one message as JSON. One of them all may be -, which is stdin. A message is of
the record Message, or else of the last record of FILE; --type names another one.

Exit codes: 3 FILE has faults, each shown with its line; 4 a file is not there, and the
other messages are checked; 8 a message does not fit, with the place in it and the reason.`

const acpCheckExample = `  skep acp check mail.acp
  skep acp check mail.acp request.json answer.json
  skep acp check mail.acp - -o json < request.json`

func (a *app) acpCheckCommand() *cobra.Command {
	var name string
	var lint bool
	cmd := &cobra.Command{
		Use: "check FILE [MESSAGE.json…]", Short: "Check declarations, and messages against them",
		Long: acpCheckHelp, Example: acpCheckExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if first := slices.Index(args, stdin); first >= 0 && slices.Contains(args[first+1:], stdin) {
				return usagef("only one of FILE and MESSAGE can be stdin")
			}
			return exactArguments("the FILE of declarations")(cmd, args[:min(len(args), 1)])
		},
	}
	cmd.Flags().StringVar(&name, "type", "", "the `RECORD` that a message is (default Message, else the last one)")
	cmd.Flags().BoolVar(&lint, "lint", false, "also warn of unusual names, and of what has no comment")
	cmd.RunE = a.command(func(cmd *cobra.Command, args []string) error {
		s, err := a.declarations(cmd.Context(), args[0])
		if err != nil {
			return a.refuseDeclarations(args[0], err)
		}
		if lint {
			s.Warnings = append(s.Warnings, s.Remarks()...)
		}
		root, err := rootOf(s, args[0], name)
		if err != nil {
			return err
		}
		return a.acpCheck(cmd.Context(), s, root, args[0], args[1:])
	})
	return cmd
}

func (a *app) acpCheck(ctx context.Context, s *dsl.Schema, root *dsl.Type, file string, messages []string) error {
	v := acpVerdict{File: file, Faults: dsl.Faults{}, Warnings: s.Warnings, Types: len(s.Types), Messages: []acpMessage{}}
	if v.Warnings == nil {
		v.Warnings = dsl.Faults{}
	}
	if root != nil {
		v.Type = root.Name
	} else if len(messages) > 0 {
		return failf(exitConfig, "%s declares no record, so there is nothing that a message could be", file)
	}
	code := exitOK
	var unreadable []error
	for _, name := range messages {
		text, err := a.readMessage(ctx, name)
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			unreadable = append(unreadable, err)
			continue
		}
		m := acpMessage{File: name, Fits: true}
		if err := check.Explain(root, text); err != nil {
			m.Fits, m.Reason, code = false, err.Error(), exitNonconforming
		}
		v.Messages = append(v.Messages, m)
	}
	if err := a.printAcpVerdict(v); err != nil {
		return err
	}
	last := len(unreadable) - 1
	for i, err := range unreadable {
		if i == last {
			return err
		}
		a.notef("skep: %s", inLine(err.Error()))
	}
	if code != exitOK {
		return reported(code)
	}
	return nil
}

// readMessage reads a little more than a message may have.
func (a *app) readMessage(ctx context.Context, name string) ([]byte, error) {
	if name == stdin {
		text, err := a.readStdin(ctx, "message")
		return []byte(text), err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, unusableFile(name, "read", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	text, err := io.ReadAll(io.LimitReader(f, check.MaxMessage+1))
	if err != nil {
		return nil, unusableFile(name, "read", err)
	}
	return text, nil
}

func (a *app) printAcpVerdict(v acpVerdict) error {
	if a.json() {
		return a.printJSON(v)
	}
	a.noteFaults(v.Warnings, "warning: ")
	if len(v.Messages) == 0 && v.Types == 0 {
		return a.printf("%s has no faults and declares nothing\n", v.File)
	}
	if len(v.Messages) == 0 {
		about := ""
		if v.Type != "" {
			about = ", a message is a " + v.Type
		}
		return a.printf("%s is good: %s%s\n", v.File, plural(int64(v.Types), "type"), about)
	}
	for _, m := range v.Messages {
		if !m.Fits {
			a.notef("%s: %s", m.File, inLine(m.Reason))
			continue
		}
		if err := a.printf("%s fits\n", m.File); err != nil {
			return err
		}
	}
	return nil
}

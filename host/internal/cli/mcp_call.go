package cli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/turn/mcp"
	"skep/host/internal/turn/mcp/toolpin"
)

func (a *app) mcpCallCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "call NAME TOOL [ARGUMENTS]", Short: "Call a pinned tool once", Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 3 {
				return nil
			}
			return exactArguments("the NAME of an [mcp.NAME] table", "the name of a TOOL")(cmd, args)
		},
		Long: `Call calls a tool that is pinned, with ARGUMENTS, a JSON object, and prints its answer as
an agent would get it: JSON, or a text. ARGUMENTS are held against what was pinned, as
those of an agent are.`,
		Example: `  skep mcp call notes read_note '{"name":"shopping"}'`,
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "how long to wait for the answer (`TIME`)")
	cmd.RunE = a.command(func(cmd *cobra.Command, args []string) error {
		text := "{}"
		if len(args) == 3 {
			text = args[2]
		}
		var object map[string]any
		if err := json.Unmarshal([]byte(text), &object); err != nil || object == nil {
			return usagef("mcp call takes ARGUMENTS as a JSON object, not %q", clip(text, 60))
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
		defer cancel()
		return a.withServer(ctx, args[0], func(m config.MCP, s *mcp.Server) error {
			return a.callTool(ctx, m, s, args[1], json.RawMessage(text))
		})
	})
	return cmd
}

func (a *app) callTool(ctx context.Context, m config.MCP, s *mcp.Server, name string, args json.RawMessage) error {
	t, ok := toolpin.Find(m.Tools, name)
	if !ok {
		return failf(exitRefused, "the tool %s of [mcp.%s] is not pinned", printable(name), m.Name).help(
			"look at it with `%s`, then `%s`", a.sameSwarm("skep mcp tools "+m.Name), a.sameSwarm("skep mcp pin "+m.Name+" "+printable(name)))
	}
	if err := definition.CheckToolCall(t, args); err != nil {
		return usagef("the tool %s of [mcp.%s] does not take these ARGUMENTS: %s", printable(name), m.Name, inLine(err.Error()))
	}
	answer, fault := s.Call(ctx, mcp.Call{Tenant: mcpTenant, Tool: name, Pin: t.SHA256, Args: args})
	if fault != nil {
		return toolFailure(fault)
	}
	var text string
	if !a.json() && json.Unmarshal(answer, &text) == nil {
		return a.printf("%s\n", printable(text))
	}
	return a.printf("%s\n", printable(string(answer)))
}

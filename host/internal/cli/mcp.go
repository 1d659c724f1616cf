package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"skep/abi"
	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/turn/mcp"
	"skep/host/internal/turn/mcp/toolpin"
)

func (a *app) mcpCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "mcp", Short: "Look at, approve and try tools of MCP servers", GroupID: groupCheck,
		Long: `A tool of an MCP server is an action once its definition was approved: pinned in a file
beside swarm.toml. Agents are shown what was pinned, and a tool that has changed since
is refused until somebody has looked at it.

These commands start the server of [mcp.NAME], or reach it, as a host would. They need
no running host.`,
	}, a.mcpToolsCommand(), a.mcpPinCommand(), a.mcpCallCommand(), a.mcpServeCommand())
}

// withServer does something with an MCP server of the file.
func (a *app) withServer(ctx context.Context, name string, do func(config.MCP, *mcp.Server) error) error {
	m, err := a.mcpServer(name)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(filepath.Dir(a.common.config))
	if err != nil {
		return err
	}
	if faults := definition.ToolFaults(&config.Config{MCP: []config.MCP{m}, File: a.common.config, Dir: dir}); len(faults) > 0 {
		return failf(exitRefused, "%s", faults[0].Message)
	}
	s := definition.ToolServer(&config.Config{Dir: dir}, m, a.subprocess(), a.env.LookupEnv, a.noteLogger(slog.LevelWarn), readVersions().Skep)
	defer func() { _ = s.Close() }() // it never fails
	return do(m, s)
}

// mcpServer finds a server in the file.
func (a *app) mcpServer(name string) (config.MCP, error) {
	servers, err := config.MCPServers(a.common.config, config.Options{Env: a.env.LookupEnv})
	if err != nil {
		return config.MCP{}, a.unreadable(err)
	}
	var names []string
	for _, m := range servers {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	f := failf(exitNotFound, "%s has no [mcp.%s]", a.common.config, name)
	if len(names) > 0 {
		return config.MCP{}, f.help("it has %s", strings.Join(names, ", "))
	}
	return config.MCP{}, f
}

// theirTools lists a server's tools.
func theirTools(ctx context.Context, s *mcp.Server) ([]toolpin.Tool, error) {
	tools, fault := s.Tools(ctx, mcpTenant)
	if fault != nil {
		return nil, toolFailure(fault)
	}
	return tools, nil
}

// mcpTenant is whose session these commands have.
const mcpTenant = "default"

// toolFailure maps the failure of a server to its exit code.
func toolFailure(fault *abi.Error) error {
	code, known := map[abi.Code]int{
		abi.CodeDenied: exitRefused, abi.CodeLimit: exitBudget, abi.CodeUnavailable: exitUnreachable, abi.CodeDeadline: exitTimeout, abi.CodeCancelled: exitInterrupted,
	}[fault.Code]
	if !known {
		code = exitFailed
	}
	return failf(code, "%s", fault.Message)
}

// toolView is one tool as it is listed.
type toolView struct {
	Name        string `json:"name"`
	State       string `json:"state"`
	SHA256      string `json:"sha256,omitempty"`
	Pinned      string `json:"pinned_sha256,omitempty"`
	Repeatable  bool   `json:"repeatable"`
	Description string `json:"description"`
	// Unchecked is why calls of it could not be checked.
	Unchecked string `json:"unchecked,omitempty"`
}

// States of a tool.
const (
	toolPinned  = "pinned"
	toolChanged = "changed"
	toolNew     = "new"
	toolGone    = "gone"
)

// compare holds the tools that a server has against those that were pinned.
func compareTools(pinned, now []toolpin.Tool) []toolView {
	views := []toolView{}
	for _, t := range now {
		v := toolView{Name: t.Name, State: toolNew, SHA256: t.SHA256, Repeatable: t.Repeatable(), Description: t.Description}
		if was, ok := toolpin.Find(pinned, t.Name); ok {
			if v.State, v.Pinned = toolPinned, was.SHA256; was.SHA256 != t.SHA256 {
				v.State = toolChanged
			}
		}
		if err := definition.CheckTool(t); err != nil {
			v.Unchecked = err.Error()
		}
		views = append(views, v)
	}
	for _, was := range pinned {
		if _, still := toolpin.Find(now, was.Name); !still {
			views = append(views, toolView{Name: was.Name, State: toolGone, Pinned: was.SHA256, Description: was.Description})
		}
	}
	return views
}

func (a *app) mcpToolsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "tools NAME", Short: "List the tools that a server has now", Args: exactArguments("the NAME of an [mcp.NAME] table"),
		Long: `Tools asks the server of [mcp.NAME] for its tools. Each is shown with a short digest of
its definition and with what it is:

  pinned   as it was approved
  changed  its definition is another one; it is refused
  new      not approved
  gone     approved, and not there any more`,
		Example: "  skep mcp tools notes\n  skep mcp tools notes -o json | jq -r '.tools[] | select(.state != \"pinned\") | .name'",
	}
	cmd.RunE = a.command(func(cmd *cobra.Command, args []string) error {
		return a.withServer(cmd.Context(), args[0], func(m config.MCP, s *mcp.Server) error {
			now, err := theirTools(cmd.Context(), s)
			if err != nil {
				return err
			}
			return a.printTools(m.Name, compareTools(m.Tools, now))
		})
	})
	return cmd
}

func (a *app) printTools(server string, views []toolView) error {
	if a.json() {
		return a.printJSON(map[string]any{"server": server, "tools": views})
	}
	wide := len("TOOL")
	for _, v := range views {
		wide = max(wide, len(v.Name))
	}
	if err := a.printf("%s\n", a.dataStyle().dim(pad("TOOL", wide)+"  STATE    DIGEST        AGAIN  DESCRIPTION")); err != nil {
		return err
	}
	for _, v := range views {
		again := "no"
		if v.Repeatable {
			again = "yes"
		}
		digest := cmp.Or(v.SHA256, v.Pinned)[:12]
		if err := a.printf("%s  %s  %s  %s  %s\n", pad(v.Name, wide), pad(v.State, 7), digest, pad(again, 5), clip(inLineVisible(v.Description), 80)); err != nil {
			return err
		}
		if v.Unchecked != "" {
			a.notef("the arguments of %s cannot be checked, so an action of it needs parameters of its own: %s", v.Name, inLine(v.Unchecked))
		}
	}
	return nil
}

// actionTable is what makes a tool an action of the file.
func actionTable(server, tool string) string {
	return fmt.Sprintf("[actions.%s]\nsource = %q\n", actionName(tool), "mcp:"+server+"/"+tool)
}

// actionName makes a name of an action of a tool's.
func actionName(tool string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(tool))
	if name = strings.TrimLeft(name, "_0123456789"); name == "" {
		name = "tool"
	}
	return name[:min(len(name), 64)]
}

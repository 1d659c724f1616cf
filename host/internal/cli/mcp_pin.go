package cli

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skep/host/internal/definition/config"
	"skep/host/internal/store/atomicfile"
	"skep/host/internal/turn/mcp"
	"skep/host/internal/turn/mcp/toolpin"
)

func (a *app) mcpPinCommand() *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use: "pin NAME [TOOL…]", Short: "Approve the definitions of tools as they are now",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("mcp pin needs the NAME of an [mcp.NAME] table")
			}
			return nil
		},
		Long: `Pin writes the definitions of tools into the file of pins of [mcp.NAME]: of the TOOLs
that are named, or of all that the server has. It shows what changes in the file, and
the tables that make new tools actions. Read the descriptions: agents will.`,
		Example: "  skep mcp pin notes --dry-run\n  skep mcp pin notes read_note",
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would change and write nothing")
	cmd.RunE = a.command(func(cmd *cobra.Command, args []string) error {
		return a.withServer(cmd.Context(), args[0], func(m config.MCP, s *mcp.Server) error {
			return a.pin(cmd.Context(), m, s, args[1:], dry)
		})
	})
	return cmd
}

// pinned is what was pinned, and its JSON.
type pinned struct {
	Server  string     `json:"server"`
	File    string     `json:"file"`
	Written bool       `json:"written"`
	Tools   []toolView `json:"tools"` // that differ from what was pinned
	Diff    string     `json:"diff"`

	inUse []string // tools that are actions of the file already
}

func (a *app) pin(ctx context.Context, m config.MCP, s *mcp.Server, names []string, dry bool) error {
	now, err := theirTools(ctx, s)
	if err != nil {
		return err
	}
	next := now
	if len(names) > 0 {
		if next, err = a.chosen(now, names, m); err != nil {
			return err
		}
		next = toolpin.Merge(m.Tools, next)
	}
	text, err := toolpin.Encode(m.Name, next)
	if err != nil {
		return err
	}
	before, err := os.ReadFile(m.Pins)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	p := pinned{Server: m.Name, File: m.Pins, Diff: toolpin.Diff(before, text), Tools: []toolView{}, inUse: m.InUse}
	for _, v := range compareTools(m.Tools, next) {
		if v.State != toolPinned {
			p.Tools = append(p.Tools, v)
		}
	}
	if !dry && p.Diff != "" {
		if err := replaceFile(m.Pins, text); err != nil {
			return err
		}
		p.Written = true
	}
	return a.printPinned(p)
}

// chosen are the tools of some names.
func (a *app) chosen(now []toolpin.Tool, names []string, m config.MCP) (some []toolpin.Tool, err error) {
	for _, name := range names {
		t, ok := toolpin.Find(now, name)
		if !ok {
			return nil, failf(exitNotFound, "the server of [mcp.%s] has no tool %s", m.Name, printable(name)).help("`%s` lists those it has", a.sameSwarm("skep mcp tools "+m.Name))
		}
		if !slices.ContainsFunc(some, func(one toolpin.Tool) bool { return one.Name == name }) {
			some = append(some, t)
		}
	}
	return some, nil
}

func (a *app) printPinned(p pinned) error {
	if a.json() {
		return a.printJSON(p)
	}
	if p.Diff == "" {
		a.notef("%s: nothing has changed", p.File)
		return nil
	}
	if err := a.printf("%s", printable(p.Diff)); err != nil {
		return err
	}
	tables := ""
	for _, v := range p.Tools {
		if v.Unchecked != "" {
			a.notef("the arguments of %s cannot be checked, so an action of it needs parameters of its own: %s", v.Name, inLine(v.Unchecked))
		}
		if v.State == toolNew && !slices.Contains(p.inUse, v.Name) {
			tables += "\n" + actionTable(p.Server, v.Name)
		}
	}
	if p.Written {
		a.notef("wrote %s", p.File)
	} else {
		a.notef("%s is as it was: this was a dry run", p.File)
	}
	if tables != "" {
		a.notef("to make actions of new tools, add what agents need to %s, and their names to an agent's actions:\n%s", a.common.config, strings.TrimSuffix(tables, "\n"))
	}
	return nil
}

// replaceFile writes a file so that no reader sees half of it, and a power cut leaves the
// old one or the new one.
func replaceFile(path string, text []byte) error { return atomicfile.CreateBytes(path, 0o644, text) }

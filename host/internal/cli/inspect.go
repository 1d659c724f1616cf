package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skep/abi"
	"skep/host"
	"skep/host/internal/sandbox"
	"skep/host/internal/wasmbin"
)

const inspectHelp = `Inspect reads a module as a host would and says what it is, what it asks for and
why. It runs nothing of the module but the part that describes it, without any
grant.

FILE is a .wasm file, or bundled:NAME for one that comes with skep.`

func (a *app) agentInspectCommand() *cobra.Command {
	return &cobra.Command{
		Use: "inspect FILE", Short: "Show what a module is and asks for", Args: takes("the FILE of a module"),
		Long: inspectHelp, Example: "  skep agent inspect calc.wasm\n  skep agent inspect bundled:script -o json",
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			i, err := a.inspect(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.json() {
				return a.printJSON(i)
			}
			return a.printInspection(i)
		}),
	}
}

// inspection is what can be known of a module without a swarm.
type inspection struct {
	File       string          `json:"file"`
	SHA256     string          `json:"sha256"`
	Size       int             `json:"size"`
	ABI        int             `json:"abi"`
	Descriptor *abi.Descriptor `json:"descriptor"`
	Imports    []string        `json:"imports"`

	source string
}

func (a *app) inspect(ctx context.Context, name string) (_ inspection, err error) {
	path, source := name, "file:"+name
	if bundled, ok := strings.CutPrefix(name, "bundled:"); ok {
		path, source = filepath.Join(a.env.Plugins, bundled+".wasm"), name
	}
	wasm, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return inspection{}, failf(exitNotFound, "there is no module %s", name)
	}
	if err != nil {
		return inspection{}, err
	}
	engine, err := sandbox.New(ctx, sandbox.Options{CacheDir: a.cacheDir(), Child: host.Compiler(a.compiler())})
	if err != nil {
		return inspection{}, err
	}
	defer func() { err = errors.Join(err, engine.Close(context.WithoutCancel(ctx))) }()
	m, err := engine.Load(ctx, sandbox.Source{Name: name, Wasm: wasm})
	if err != nil {
		return inspection{}, err
	}
	imports, err := importsOf(wasm)
	return inspection{
		File: name, SHA256: m.Digest(), Size: m.Size(), ABI: m.Descriptor().ABI,
		Descriptor: m.Descriptor(), Imports: imports, source: source,
	}, err
}

// importsOf lists what a module takes from the host.
func importsOf(wasm []byte) ([]string, error) {
	m, err := wasmbin.Admit(wasm, wasmbin.DefaultCaps())
	if err != nil {
		return nil, err
	}
	names := make([]string, len(m.Imports))
	for i, imp := range m.Imports {
		names[i] = imp.Module + "." + imp.Name
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (a *app) printInspection(i inspection) error {
	d, st := i.Descriptor, a.dataStyle()
	var b strings.Builder
	row := func(title, text string) { fmt.Fprintf(&b, "%s  %s\n", st.dim(pad(title, 8)), printable(text)) }
	row("module", strings.TrimSuffix(d.Name+" "+d.Version+": "+d.Description, ": "))
	row("file", i.File)
	row("sha256", i.SHA256)
	row("size", fmt.Sprintf("%s (%d bytes)", binarySize(i.Size), i.Size))
	row("ABI", fmt.Sprint(i.ABI))
	title := "agents"
	for _, agent := range d.Agents {
		row(title, strings.TrimSuffix(agent.Name+": "+agent.Description, ": "))
		title = ""
	}
	title = "actions"
	for _, action := range d.Actions {
		row(title, strings.TrimSuffix(action.Name+": "+action.Description, ": "))
		title = ""
	}
	title = "asks for"
	for _, text := range requestLines(d) {
		row(title, text)
		title = ""
	}
	title = "imports"
	for _, text := range importLines(i.Imports) {
		row(title, text)
		title = ""
	}
	row("use it", "[agents."+agentName(d)+"]")
	row("", fmt.Sprintf("source = %q", i.source))
	row("", fmt.Sprintf("sha256 = %q", i.SHA256))
	return a.printf("%s", b.String())
}

func binarySize(n int) string {
	if n < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// requestLines says in plain words what a module asks for.
func requestLines(d *abi.Descriptor) []string {
	if len(d.Requests) == 0 {
		return []string{"nothing but mail"}
	}
	lines := make([]string, len(d.Requests))
	for i, r := range d.Requests {
		need := "needs"
		if r.Optional {
			need = "would like"
		}
		lines[i] = fmt.Sprintf("%s %s: %s", need, host.Wants(r), oneLine(r.Reason))
	}
	return lines
}

// importLines groups imports by the module they come from.
func importLines(imports []string) []string {
	const wide = 90
	if len(imports) == 0 {
		return []string{"nothing"}
	}
	var lines []string
	last := ""
	for _, name := range imports {
		module, function, _ := strings.Cut(name, ".")
		switch n := len(lines) - 1; {
		case module != last:
			lines, last = append(lines, module+": "+function), module
		case len(lines[n])+len(function) > wide:
			lines[n] += ","
			lines = append(lines, "  "+function)
		default:
			lines[n] += ", " + function
		}
	}
	return lines
}

// agentName suggests what to call an agent of this module.
func agentName(d *abi.Descriptor) string {
	if len(d.Agents) > 0 {
		return printable(d.Agents[0].Name)
	}
	return printable(d.Name)
}

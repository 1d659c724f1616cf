package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skep/host/internal/conform"
	"skep/host/internal/definition"
	"skep/host/internal/turn/wasm"
	"skep/host/internal/turn/wasm/binary"
)

const checkHelp = `Check tries an agent's module and says what it cannot bear: large inputs, short
buffers, every error, being called off, and more. It needs no swarm and leaves
nothing behind: ops are answered from the conformance vectors that skep carries.

FILE is a .wasm file, or bundled:NAME for one that comes with skep. The exit
code is 8 when a check fails, and 5 when a host would refuse the module.`

const checkExample = `  skep agent check calc.wasm
  skep agent check calc.wasm --only errors
  skep agent check bundled:script -o json | jq .failed
  skep agent check --list`

func (a *app) agentCheckCommand() *cobra.Command {
	var only string
	var list bool
	cmd := &cobra.Command{
		Use: "check FILE", Short: "Try a module with everything an agent must bear",
		Long: checkHelp, Example: checkExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if list {
				return atMost(0)(cmd, args)
			}
			return exactArguments("the FILE of a module")(cmd, args)
		},
	}
	cmd.Flags().StringVar(&only, "only", "", "make one check, by its `NAME`")
	cmd.Flags().BoolVar(&list, "list", false, "list the checks and make none")
	cmd.RunE = a.command(func(cmd *cobra.Command, args []string) error {
		if list {
			return a.listChecks()
		}
		return a.checkAgent(cmd.Context(), args[0], only)
	})
	return cmd
}

func (a *app) listChecks() error {
	list := conform.List()
	if a.json() {
		return a.printJSON(map[string]any{"checks": list})
	}
	for _, c := range list {
		if err := a.printf("%s  %s\n", pad(c.Name, checkWidth), c.About); err != nil {
			return err
		}
	}
	return nil
}

// checkWidth is the column of the names of checks.
const checkWidth = 18

func (a *app) checkAgent(ctx context.Context, name, only string) error {
	report, err := a.runChecks(ctx, name, only)
	if err != nil {
		return a.reportUncheckable(name, err)
	}
	if err := a.printReport(checkReport{Report: report}); err != nil {
		return err
	}
	if report.Failed > 0 {
		return reported(exitNonconforming)
	}
	return nil
}

func (a *app) runChecks(ctx context.Context, name, only string) (conform.Report, error) {
	wasmBytes, err := a.readModule(name)
	if err != nil {
		return conform.Report{}, err
	}
	p := &progress{app: a, patience: slowStep}
	defer p.stop()
	report, err := conform.Check(ctx, wasm.Source{Name: name, Wasm: wasmBytes}, conform.Options{
		Engine: wasm.Options{CacheDir: a.cacheDir(), Child: definition.Compiler(a.compiler())},
		Only:   only, Progress: p.begin,
	})
	if errors.Is(err, conform.ErrNoCheck) {
		return report, usagef("%w", err).help("`skep agent check --list` names all")
	}
	return report, err
}

// checkReport is the JSON of a check.
type checkReport struct {
	conform.Report
	Refused *refusedView `json:"refused"`
}

// reportUncheckable reports a refused module, as JSON too.
func (a *app) reportUncheckable(name string, err error) error {
	refused := refusedBy(err)
	if refused == nil || !a.json() {
		return err
	}
	return errors.Join(a.printJSON(checkReport{
		Report: conform.Report{File: name, Checks: []conform.Verdict{}}, Refused: refused,
	}), err)
}

// readModule reads a module by its file, or as one that comes with skep, as far
// as the default caps admit. Nothing but the module is at stake, so it may be one
// that others can replace.
func (a *app) readModule(name string) ([]byte, error) {
	path := name
	bundled, isBundled := strings.CutPrefix(name, "bundled:")
	if isBundled {
		path = filepath.Join(a.env.Plugins, bundled+".wasm")
	}
	wasmBytes, err := wasm.ReadAnyModule(name, path, binary.DefaultCaps())
	if isBundled && errors.Is(err, fs.ErrNotExist) && a.env.Bundled != nil {
		wasmBytes, err = a.env.Bundled.Read(bundled)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, failf(exitNotFound, "there is no module %s", name)
	}
	if err == nil && isProgram(wasmBytes) {
		return nil, failf(exitRefused, "%s is a program, and this command reads modules", name).help(
			"a program becomes an agent with source = \"exec:%s\" and trusted = true; `skep run` tries it", name)
	}
	return wasmBytes, err
}

// isProgram reports whether a file is one that the system runs itself.
func isProgram(file []byte) bool {
	return bytes.HasPrefix(file, []byte("\x7fELF")) || bytes.HasPrefix(file, []byte("#!"))
}

func (a *app) printReport(r checkReport) error {
	if a.json() {
		return a.printJSON(r)
	}
	return a.printf("%s", reportText(r.Report, a.dataStyle()))
}

// reportText has a line for every check, and below it what is wrong.
func reportText(r conform.Report, st style) string {
	var b strings.Builder
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%s  %s  %s\n", resultWord(c.Result, st), pad(c.Name, checkWidth), indentBelow(printable(c.Detail), checkWidth+8))
		for _, p := range c.Problems {
			indent := "\n" + strings.Repeat(" ", checkWidth+10)
			b.WriteString(strings.Repeat(" ", checkWidth+8) + "- " + strings.ReplaceAll(printable(p), "\n", indent) + "\n")
		}
	}
	text := fmt.Sprintf("%s: %s passed, %d failed", r.File, plural(int64(r.Passed), "check"), r.Failed)
	if r.Kind == conform.KindConformance {
		text += " (a conformance guest)"
	}
	return b.String() + printable(text) + "\n"
}

func resultWord(r conform.Result, st style) string {
	switch r {
	case conform.Pass:
		return st.green("pass")
	case conform.Fail:
		return st.red("FAIL")
	case conform.Note:
		return st.yellow("note")
	}
	return st.dim("n/a ")
}

// slowStep is how long a step may take before it is named.
const slowStep = 2 * time.Second

// progress names the steps that take long.
type progress struct {
	app      *app
	patience time.Duration
	timer    *time.Timer
}

// begin ends the step before.
func (p *progress) begin(step string) {
	p.stop()
	p.timer = time.AfterFunc(p.patience, func() { p.app.notef("%s takes a while …", step) })
}

func (p *progress) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

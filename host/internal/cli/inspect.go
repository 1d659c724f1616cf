package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skep/host/internal/definition"
	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm"
	"skep/host/internal/turn/wasm/binary"
)

const inspectHelp = `Inspect reads a module as a host would and says what it is, what it asks for and
why, how near it comes to the default limits, and what running it costs. It runs
nothing of the module but the parts that start and describe it, without any
grant. What refuses a module is said as well; the exit code is 5 then.

FILE is a .wasm file, or bundled:NAME for one that comes with skep. The language
is a guess from what compilers leave behind: no author is held to it.`

const inspectExample = `  skep agent inspect calc.wasm
  skep agent inspect bundled:script --compile
  skep agent inspect bundled:script -o json | jq .requests`

func (a *app) agentInspectCommand() *cobra.Command {
	var compile bool
	cmd := &cobra.Command{
		Use: "inspect FILE", Short: "Show what a module is and asks for", Args: exactArguments("the FILE of a module"),
		Long: inspectHelp, Example: inspectExample,
	}
	cmd.Flags().BoolVar(&compile, "compile", false, "compile it anew as well, and say how long that takes")
	cmd.RunE = a.command(func(cmd *cobra.Command, args []string) error {
		i, err := a.inspect(cmd.Context(), args[0], compile)
		if err != nil {
			return a.reportUninspectable(args[0], err)
		}
		if err := a.printInspection(i); err != nil || i.refusal == nil {
			return err
		}
		return i.refusal
	})
	return cmd
}

func (a *app) printInspection(i *inspection) error {
	if a.json() {
		return a.printJSON(i)
	}
	return a.printf("%s", i.text(a.dataStyle()))
}

// reportUninspectable reports a module that cannot be inspected, as JSON too.
func (a *app) reportUninspectable(name string, err error) error {
	refused := refusedBy(err)
	if refused == nil || !a.json() {
		return err
	}
	return errors.Join(a.printJSON(&inspection{File: name, Refused: refused}), err)
}

// inspect reads, loads and measures a module. Its error is never the module's
// fault.
func (a *app) inspect(ctx context.Context, name string, compile bool) (*inspection, error) {
	source := "file:" + name
	if strings.HasPrefix(name, "bundled:") {
		source = name
	}
	wasmBytes, err := a.readModule(name)
	if err != nil {
		return nil, err
	}
	i := newInspection(name, source, wasmBytes)
	metered := i.readModule(wasmBytes)
	if compile && metered != nil {
		if err := a.compileUncached(ctx, i, wasmBytes, metered); err != nil {
			return nil, err
		}
	}
	return i, a.withEngine(ctx, a.cacheDir(), func(e *wasm.Engine) error { return i.loadModule(ctx, e, wasmBytes) })
}

// withEngine calls do with a new engine.
func (a *app) withEngine(ctx context.Context, cache string, do func(e *wasm.Engine) error) error {
	engine, err := wasm.New(ctx, wasm.Options{CacheDir: cache, Child: definition.Compiler(a.compiler())})
	if err != nil {
		return err
	}
	return errors.Join(do(engine), engine.Close(context.WithoutCancel(ctx)))
}

// compileUncached loads the module beside the compile cache and takes the time. A
// refusal shows when it is loaded as usual.
func (a *app) compileUncached(ctx context.Context, i *inspection, wasmBytes, metered []byte) error {
	dir, err := os.MkdirTemp("", "skep-inspect-")
	if err != nil {
		return err
	}
	i.Compile = &compileView{Cached: wasm.Compiled(a.cacheDir(), metered)}
	err = a.withEngine(ctx, dir, func(e *wasm.Engine) error {
		begin := time.Now()
		_, err := e.Load(ctx, wasm.Source{Name: i.File, Wasm: wasmBytes})
		i.Compile.Millis = time.Since(begin).Milliseconds()
		var refused *turn.LoadError
		if errors.As(err, &refused) {
			return nil
		}
		return err
	})
	return errors.Join(err, os.RemoveAll(dir))
}

// loadModule loads the module into a sandbox, which decides.
func (i *inspection) loadModule(ctx context.Context, e *wasm.Engine, wasmBytes []byte) error {
	m, err := e.Load(ctx, wasm.Source{Name: i.File, Wasm: wasmBytes})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.As(err, &i.refusal) {
		i.Refused = refusedBy(err)
		return nil
	}
	if err != nil {
		return err
	}
	i.describe(m.Descriptor())
	s, exit := m.Startup(ctx, turn.Limits{})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case exit != nil:
		i.Start = &startView{Failed: fmt.Sprintf("%v", exit)}
	default:
		i.Start = &startView{Memory: s.Memory, Image: s.Image, Reset: s.Reset, Anew: s.NoImageReason}
	}
	return nil
}

// readModule finds out what shows without compiling anything. It returns the metered
// module, or nil where the module is not admitted.
func (i *inspection) readModule(wasmBytes []byte) []byte {
	m, err := binary.Admit(wasmBytes, binary.InspectionCaps())
	if err != nil {
		return nil
	}
	i.structure(m)
	admitted, err := binary.Admit(wasmBytes, binary.DefaultCaps())
	if err != nil {
		return nil
	}
	bare, err := admitted.MeterDetached(binary.Options{})
	if err != nil {
		return nil
	}
	i.Metering = &meterView{Code: m.CodeSize(), Metered: bare.Code, Charges: bare.Charges}
	return bare.Wasm
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skep/host"
	"skep/host/internal/sandbox"
	"skep/host/internal/wasmbin"
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
		Use: "inspect FILE", Short: "Show what a module is and asks for", Args: takes("the FILE of a module"),
		Long: inspectHelp, Example: inspectExample,
	}
	cmd.Flags().BoolVar(&compile, "compile", false, "compile it anew as well, and say how long that takes")
	cmd.RunE = a.command(func(cmd *cobra.Command, args []string) error {
		i, err := a.inspect(cmd.Context(), args[0], compile)
		if err != nil {
			return a.unseen(args[0], err)
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

// unseen tells in JSON as well why there is nothing to inspect, if that is the
// module's fault.
func (a *app) unseen(name string, err error) error {
	refused := refusedBy(err)
	if refused == nil || !a.json() {
		return err
	}
	return errors.Join(a.printJSON(&inspection{File: name, Refused: refused}), err)
}

// inspect finds out all that can be known of a module. Its error is none of the
// module's.
func (a *app) inspect(ctx context.Context, name string, compile bool) (*inspection, error) {
	source := "file:" + name
	if strings.HasPrefix(name, "bundled:") {
		source = name
	}
	wasm, err := a.readModule(name)
	if err != nil {
		return nil, err
	}
	i := newInspection(name, source, wasm)
	metered := i.read(wasm)
	if compile && metered != nil {
		if err := a.compileAnew(ctx, i, wasm, metered); err != nil {
			return nil, err
		}
	}
	return i, a.inWith(ctx, a.cacheDir(), func(e *sandbox.Engine) error { return i.load(ctx, e, wasm) })
}

// inWith calls do with an engine of its own.
func (a *app) inWith(ctx context.Context, cache string, do func(e *sandbox.Engine) error) error {
	engine, err := sandbox.New(ctx, sandbox.Options{CacheDir: cache, Child: host.Compiler(a.compiler())})
	if err != nil {
		return err
	}
	return errors.Join(do(engine), engine.Close(context.WithoutCancel(ctx)))
}

// compileAnew loads the module beside the compile cache and takes the time. A
// refusal shows when it is loaded as usual.
func (a *app) compileAnew(ctx context.Context, i *inspection, wasm, metered []byte) error {
	dir, err := os.MkdirTemp("", "skep-inspect-")
	if err != nil {
		return err
	}
	i.Compile = &compileView{Cached: sandbox.Compiled(a.cacheDir(), metered)}
	err = a.inWith(ctx, dir, func(e *sandbox.Engine) error {
		begin := time.Now()
		_, err := e.Load(ctx, sandbox.Source{Name: i.File, Wasm: wasm})
		i.Compile.Millis = time.Since(begin).Milliseconds()
		var refused *sandbox.LoadError
		if errors.As(err, &refused) {
			return nil
		}
		return err
	})
	return errors.Join(err, os.RemoveAll(dir))
}

// load asks a sandbox, which has the last word.
func (i *inspection) load(ctx context.Context, e *sandbox.Engine, wasm []byte) error {
	m, err := e.Load(ctx, sandbox.Source{Name: i.File, Wasm: wasm})
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
	s, exit := m.Startup(ctx, sandbox.Limits{})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case exit != nil:
		i.Start = &startView{Failed: fmt.Sprintf("%v", exit)}
	default:
		i.Start = &startView{Memory: s.Memory, Image: s.Image, Reset: s.Reset, Anew: s.Restless}
	}
	return nil
}

// read finds out what shows without compiling anything. It returns the metered
// module, or nil where the module is not admitted.
func (i *inspection) read(wasm []byte) []byte {
	m, err := wasmbin.Admit(wasm, wasmbin.GenerousCaps())
	if err != nil {
		return nil
	}
	i.structure(m)
	admitted, err := wasmbin.Admit(wasm, wasmbin.DefaultCaps())
	if err != nil {
		return nil
	}
	bare, err := admitted.MeterBare(wasmbin.Options{})
	if err != nil {
		return nil
	}
	i.Metering = &meterView{Code: m.CodeSize(), Metered: bare.Code, Charges: bare.Charges}
	return bare.Wasm
}

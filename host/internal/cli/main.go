package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"skep/host/client"
	"skep/host/internal/definition/config"
	"skep/host/internal/turn/process"
)

// Main runs one command line and returns its exit code. A second signal makes
// it return at once and leave behind what still runs; the process is expected
// to end then.
func Main(ctx context.Context, env Env) int {
	if len(env.Args) > 0 && env.Args[0] == compileCommand {
		return env.compile(ctx)
	}
	if len(env.Args) > 0 && env.Args[0] == process.Command {
		return env.execute()
	}
	soft, cut, stop := watchSignals(ctx, env.Signals)
	done := make(chan int, 1)
	go func() { done <- newApp(env).main(soft) }()
	select {
	case code := <-done:
		stop()
		return code
	case <-cut:
		return exitInterrupted
	}
}

// app is one command line on its way.
type app struct {
	env    Env
	common common
	// keySource is where the key for the host comes from, empty for none.
	keySource string
	// noWait makes a refusal by a limit final.
	noWait bool
	// ran is set once a command has begun: errors before are the caller's.
	ran bool
	// answered is set once the answer is here: a connection that breaks from
	// then on is not worth a word.
	answered atomic.Bool
}

func newApp(env Env) *app {
	env.Stdout, env.Stderr = &locked{w: env.Stdout}, &locked{w: env.Stderr}
	return &app{env: env}
}

func (a *app) main(ctx context.Context) int {
	root := a.root()
	root.SetArgs(append([]string{}, a.env.Args...)) // nil would mean the arguments of the process
	root.SetIn(a.env.Stdin)
	root.SetOut(a.env.Stdout)
	root.SetErr(a.env.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	var known *failure
	if !a.ran && !errors.As(err, &known) {
		err = usageError(cmd, err)
	}
	f := explain(err)
	var refusal *client.Error
	if errors.As(f, &refusal) && (refusal.Status == http.StatusUnauthorized || refusal.Status == http.StatusForbidden) {
		f.hint = a.credentialHint(refusal)
	}
	a.report(cmd, f)
	return f.code
}

// noteIndent is the indent below a line of "skep: …".
const noteIndent = 6

// report prints why a command failed and what to do.
func (a *app) report(cmd *cobra.Command, f *failure) {
	if errors.Is(f, errReported) {
		return
	}
	more := ""
	if f.code == exitUsage && !a.ran {
		more = fmt.Sprintf("`%s --help` tells more", cmd.CommandPath())
	}
	if a.failsAsData() {
		f.hint = cmp.Or(f.hint, more)
		a.reportJSON(f)
		return
	}
	var faults config.Faults
	if errors.As(f, &faults) {
		for _, fault := range faults {
			a.notef("%s", inLine(fault.String()))
		}
		return
	}
	st := a.noteStyle()
	a.notef("%s %s", st.red("skep:"), indentBelow(printable(f.Error()), noteIndent))
	if f.hint != "" {
		a.notef("      %s", indentBelow(printable(f.hint), noteIndent))
	}
	if more != "" {
		a.notef("      %s", more)
	}
}

// usageError puts an error of the command parser into our words.
func usageError(cmd *cobra.Command, err error) *failure {
	text, _, _ := strings.Cut(err.Error(), "\n")
	f := usagef("%s", text)
	if name, ok := quoted(text); ok && strings.HasPrefix(text, "unknown command") {
		suggest(f, cmd, name)
	}
	return f
}

// suggest names the command that was probably meant.
func suggest(f *failure, cmd *cobra.Command, name string) {
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		f.hint = fmt.Sprintf("did you mean `%s %s`?", cmd.CommandPath(), near[0])
	}
}

// quoted returns the first quoted word of a text.
func quoted(text string) (string, bool) {
	_, rest, ok := strings.Cut(text, `"`)
	if !ok {
		return "", false
	}
	word, _, ok := strings.Cut(rest, `"`)
	return word, ok
}

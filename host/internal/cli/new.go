package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"skep/host/internal/scaffold"
)

func (a *app) newCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "new", Short: "Begin an agent of your own", GroupID: groupCheck,
		Long: "New commands write the files that something of your own begins with.",
	}, a.newAgentCommand())
}

const newAgentHelp = `New agent writes a project: an agent that works, its test, a swarm that runs it,
and the sources of the SDK, so that nothing has to be fetched to build it. The
directory is NAME, or that of --dir; when there is something in it already,
nothing is written.

Languages, and what building takes:
  go              Go 1.24
  rust            cargo, and rustc with the target wasm32-unknown-unknown
  c               clang and wasm-ld, and any C compiler for the test
  assemblyscript  Node 20, and the compiler that npm install gets

Exit codes: 1 the directory is in use, 2 the name or the language is none.`

const newAgentExample = `  skep new agent bee
  cd bee && make test && make run

  skep new agent bee --lang rust --dir agents/bee`

func (a *app) newAgentCommand() *cobra.Command {
	var p scaffold.Agent
	cmd := &cobra.Command{
		Use: "agent NAME", Short: "Write the project of an agent", Args: exactArguments("a NAME for the agent"),
		Long: newAgentHelp, Example: newAgentExample,
	}
	cmd.Flags().StringVar(&p.Language, "lang", "go", "`LANGUAGE` to write in: "+strings.Join(scaffold.Languages(), ", "))
	cmd.Flags().StringVar(&p.Dir, "dir", "", "the `DIR` to write to (default NAME)")
	cmd.RunE = a.command(func(_ *cobra.Command, args []string) error {
		if p.Name = args[0]; p.Dir == "" {
			p.Dir = p.Name
		}
		return a.newAgent(p)
	})
	return cmd
}

func (a *app) newAgent(p scaffold.Agent) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	p.Program = program
	files, err := p.Write()
	switch {
	case errors.Is(err, scaffold.ErrLanguage) && p.Language == "python":
		return usagef("%w", err).help("an agent in Python is a program, not a module; sdk/python/README.md begins one")
	case errors.Is(err, scaffold.ErrName), errors.Is(err, scaffold.ErrLanguage):
		return usagef("%w", err)
	case errors.Is(err, scaffold.ErrExists):
		return failf(exitFailed, "nothing is written to %w", err).help("--dir names another directory")
	case err != nil:
		return err
	}
	if a.json() {
		return a.printJSON(struct {
			Name     string   `json:"name"`
			Language string   `json:"language"`
			Dir      string   `json:"dir"`
			Files    []string `json:"files"`
		}{p.Name, p.Language, p.Dir, files})
	}
	return a.printNewAgent(p, files)
}

// printNewAgent lists what is the author's, and sums up what is the SDK's.
func (a *app) printNewAgent(p scaffold.Agent, files []string) error {
	var own []string
	sdk := 0
	for _, f := range files {
		if strings.HasPrefix(f, "skep/") || strings.HasPrefix(f, "internal/skep/") {
			sdk++
			continue
		}
		own = append(own, f)
	}
	text := fmt.Sprintf("%s, an agent in %s: %s, and %d files of the SDK\n", p.Dir, p.Language, strings.Join(own, ", "), sdk)
	if err := a.printf("%s", text); err != nil {
		return err
	}
	tools := ""
	if p.Language == "assemblyscript" {
		tools = "npm install && "
	}
	a.notef("next: cd %s && %smake test && make run", p.Dir, tools)
	return nil
}

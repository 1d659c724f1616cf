package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
)

const validateHelp = `Validate reads swarm.toml as serve would, loads every module it names, and starts
nothing. It asks no other program or machine: skep doctor looks at the PostgreSQL server
of [store], and with --online at what agents call. Each fault is one line on stderr:

  FILE:LINE:COL: what is wrong (did you mean "…"?)

Exit codes: 3 the file has faults, 4 it is not there, 5 the only faults are
modules that are refused (digest, structure, ABI), and files or directories that
others could replace.`

const validateExample = `  skep validate
  skep validate --explain            every limit in force, with its key
  skep validate -o json | jq -r '.faults[].message'`

func (a *app) validateCommand() *cobra.Command {
	var all, plainHTTP bool
	cmd := &cobra.Command{
		Use: "validate", Short: "Check swarm.toml and its modules", GroupID: groupCheck,
		Long: validateHelp, Example: validateExample, Args: atMost(0),
	}
	cmd.Flags().BoolVar(&all, "explain", false, "list every limit in force with its key")
	plainHTTPFlag(cmd, &plainHTTP)
	cmd.RunE = a.command(func(cmd *cobra.Command, _ []string) error { return a.validate(cmd.Context(), all, plainHTTP) })
	return cmd
}

// verdict is what validate has found, and its JSON.
type verdict struct {
	Faults   config.Faults  `json:"faults"`
	Warnings config.Faults  `json:"warnings"`
	Limits   []config.Limit `json:"limits,omitempty"`
	Swarm    string         `json:"swarm,omitempty"`
	Agents   int            `json:"agents,omitempty"`

	code       int
	modules    int
	entrypoint string
}

func (a *app) validate(ctx context.Context, all, plainHTTP bool) error {
	v, err := a.check(ctx, all, plainHTTP)
	if err != nil {
		return err
	}
	if err := a.printVerdict(v); err != nil {
		return err
	}
	if v.code != exitOK {
		return reported(v.code)
	}
	return nil
}

// check reads the file and loads its modules. Its error is none of the file's.
func (a *app) check(ctx context.Context, all, plainHTTP bool) (verdict, error) {
	cfg, err := a.loadConfig(plainHTTP)
	var faults config.Faults
	if errors.As(err, &faults) {
		return verdict{Faults: faults, Warnings: config.Faults{}, code: exitConfig}, nil
	}
	if err != nil {
		return verdict{}, err
	}
	v, err := a.checkFile(ctx, cfg)
	if all && err == nil {
		v.Limits = config.Explain(cfg)
	}
	return v, err
}

// checkFile loads the modules of a file whose grammar is good.
func (a *app) checkFile(ctx context.Context, cfg *config.Config) (verdict, error) {
	v := verdict{
		Warnings: warningsOf(cfg), Swarm: cfg.Swarm.Name, Agents: len(cfg.Agents), entrypoint: cfg.Swarm.Entrypoint,
	}
	found, err := a.checkModules(ctx, cfg, a.cacheDir())
	if err != nil {
		return verdict{}, err
	}
	v.modules = found.modules
	switch {
	case len(found.grants) > 0:
		v.code = exitConfig
	case len(found.refused) > 0:
		v.code = exitRefused
	}
	v.Faults = sortFaults(append(found.grants, found.refused...))
	return v, nil
}

// warningsOf are the warnings of a file and of its grants.
func warningsOf(cfg *config.Config) config.Faults {
	return sortFaults(slices.Concat(cfg.Warnings, definition.Warnings(cfg)))
}

func (a *app) printVerdict(v verdict) error {
	if a.json() {
		if v.Warnings == nil {
			v.Warnings = config.Faults{}
		}
		return a.printJSON(v)
	}
	for _, f := range v.Faults {
		a.notef("%s", inLine(f.String()))
	}
	a.noteWarnings(v.Warnings)
	if err := a.printLimits(v.Limits); err != nil || len(v.Faults) > 0 {
		return err
	}
	return a.printf("%s is good: swarm %q, %s of %s, entrypoint %s\n", a.common.config, v.Swarm,
		plural(int64(v.Agents), "agent"), plural(int64(v.modules), "module"), v.entrypoint)
}

// noteWarnings prints what is probably not meant in a file but works.
func (a *app) noteWarnings(warnings config.Faults) {
	for _, w := range warnings {
		a.notef("%s: %s %s", positionText(w), a.noteStyle().yellow("warning:"), inLine(w.Message))
	}
}

// printLimits lists limits and marks the ones the file sets.
func (a *app) printLimits(limits []config.Limit) error {
	st, wide, values := a.dataStyle(), 0, 0
	for _, l := range limits {
		wide, values = max(wide, len(l.Key)), max(values, len(l.Value))
	}
	for _, l := range limits {
		origin := st.dim("default")
		if l.Set {
			origin = "set in the file"
		}
		if err := a.printf("%s  %s  %s\n", pad(l.Key, wide), pad(l.Value, values), origin); err != nil {
			return err
		}
	}
	return nil
}

package cli

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"skep/host/internal/datadir"
	"skep/host/internal/definition/config"
)

const replayHelp = `Replay runs the recorded turns of a task again, on the modules they ran on, and
compares what they do: the calls they make, what they write, the fuel they use.
Every call is answered from the record; nothing is sent anywhere. The data
directory is only read, also while a host is using it.

It prints equal, or diverged with the first difference. With --turn and --at it
stops at a call and shows what the agent asked and was told. With --calls it lists
every call and what became of it, also those that a task's log does not have, as
of values, timers and HTTP, and those that were refused; -o json gives one JSON
object a line then. --turn lists the calls of one turn.

Of swarm.toml only the agents' sources, [limits] and [store] are read.

A turn of a process (exec:) is skipped, because a process does not repeat itself.

Exit codes: 0 all turns did the same, 1 one did not, 4 there is no such task,
turn or call.`

const replayExample = `  skep replay 3b0e4c1a-…
  skep replay 3b0e4c1a-… --turn 2 --at 5    the fifth call of the second turn
  skep replay 3b0e4c1a-… --turn 2 --calls   every call of the second turn
  skep replay k --tenant acme --instance user:alice
  skep replay 3b0e4c1a-… -o json | jq .equal`

func (a *app) replayCommand() *cobra.Command {
	var opt datadir.ReplayOptions
	calls := false
	cmd := &cobra.Command{
		Use: "replay TASK", Short: "Run recorded turns again and compare", GroupID: groupCheck,
		Long: replayHelp, Example: replayExample, Args: exactArguments("the ID of a task"),
	}
	cmd.Flags().Int64Var(&opt.Turn, "turn", 0, "`N`umber of the turn, from 1 (default all)")
	cmd.Flags().StringVar(&opt.At, "at", "", "stop at this `CALL` of the turn, as in 3, and show it")
	cmd.Flags().BoolVar(&calls, "calls", false, "list every call and what became of it")
	cmd.Flags().StringVar(&opt.Tenant, "tenant", "", "the task's tenant, its `NAME`, where several have the ID")
	cmd.Flags().StringVar(&opt.Instance, "instance", "", "the task's `INSTANCE`, as in user:alice or user:acme/alice, where several have the ID")
	cmd.RunE = a.commandOnData(func(cmd *cobra.Command, args []string) error {
		switch {
		case cmd.Flags().Changed("turn") && opt.Turn < 1:
			return usagef("--turn counts from 1")
		case opt.At != "" && opt.Turn == 0:
			return usagef("--at needs --turn, as in --turn 2 --at 5")
		case opt.At != "" && calls:
			return usagef("--at shows one call and --calls lists all: give one of them")
		}
		opt.Task = args[0]
		if calls {
			return a.replayCalls(cmd, opt)
		}
		turns, err := a.replay(cmd, opt)
		if err != nil {
			return err
		}
		if opt.At != "" && turns[0].Skipped != "" {
			return failf(exitFailed, "turn %d of %s: %s", turns[0].Turn, turns[0].Agent, turns[0].Skipped)
		}
		if opt.At != "" && turns[0].StoppedAt != nil {
			return a.printFirstCall(turns[0])
		}
		return a.printReplay(opt.Task, turns)
	})
	return cmd
}

func (a *app) replay(cmd *cobra.Command, opt datadir.ReplayOptions) (turns []datadir.ReplayedTurn, err error) {
	opt.Config, err = config.LoadModules(a.common.config, config.Options{Env: a.env.LookupEnv, BundleDir: a.env.Plugins, Bundled: a.env.Bundled})
	if err != nil {
		return nil, a.unreadable(err)
	}
	if opt.Config.Store, err = a.storeOf(opt.Config.Store); err != nil {
		return nil, err
	}
	opt.DataDir, opt.CacheDir, opt.Compiler = a.dataDir(), a.cacheDir(), a.compiler()
	return datadir.Replay(cmd.Context(), opt)
}

// replayedJSON is the JSON of one turn.
type replayedJSON struct {
	Turn       int64  `json:"turn"`
	Agent      string `json:"agent"`
	Ops        int    `json:"ops"`
	Fuel       uint64 `json:"fuel"`
	Equal      bool   `json:"equal"`
	Difference string `json:"difference,omitempty"`
	Skipped    string `json:"skipped,omitempty"`
}

func (a *app) printReplay(task string, turns []datadir.ReplayedTurn) error {
	out := struct {
		Task  string         `json:"task"`
		Equal bool           `json:"equal"`
		Turns []replayedJSON `json:"turns"`
	}{task, true, nil}
	for _, t := range turns {
		equal := t.Difference == ""
		out.Equal = out.Equal && equal
		out.Turns = append(out.Turns, replayedJSON{t.Turn, t.Agent, t.Ops, t.Fuel, equal, t.Difference, t.Skipped})
	}
	var err error
	if a.json() {
		err = a.printJSON(out)
	} else {
		err = a.printTurns(out.Turns, out.Equal)
	}
	if err == nil && !out.Equal {
		return reported(exitFailed)
	}
	return err
}

func (a *app) printTurns(turns []replayedJSON, equal bool) error {
	for _, t := range turns {
		if t.Skipped != "" {
			a.notef("turn %d of %s: skipped: %s", t.Turn, inLine(t.Agent), inLine(t.Skipped))
			continue
		}
		a.notef("turn %d of %s: %s, %d fuel%s", t.Turn, inLine(t.Agent), plural(int64(t.Ops), "op"), t.Fuel, unequal(t))
	}
	if equal {
		return a.printf("equal\n")
	}
	return a.printf("diverged\n")
}

func unequal(t replayedJSON) string {
	if t.Equal {
		return ""
	}
	return ": " + indentBelow(printable(t.Difference), noteIndent)
}

// printFirstCall shows one call.
func (a *app) printFirstCall(t datadir.ReplayedTurn) error {
	s := t.StoppedAt
	v := newCallJSON(t.Turn, t.Agent, *s)
	if a.json() {
		return a.printJSON(v)
	}
	st := a.dataStyle()
	for _, row := range [][2]string{
		{"turn", fmt.Sprintf("%d of %s", t.Turn, inLine(t.Agent))}, {"call", s.Call + " " + v.Op}, {"time", v.Time},
		{"asked", printable(string(s.Request))}, {"told", printable(string(s.Answer))}, {"error", printable(v.Error)},
	} {
		if row[1] == "" {
			continue
		}
		if err := a.printf("%s  %s\n", st.dim(pad(row[0], 5)), indentBelow(row[1], 7)); err != nil {
			return err
		}
	}
	return nil
}

// asJSON renders an answer to an agent: JSON as it is, text as a string, anything else
// as base64.
func asJSON(b []byte) json.RawMessage {
	if len(b) == 0 {
		return nil
	}
	if json.Valid(b) {
		return b
	}
	var raw []byte
	if utf8.Valid(b) {
		raw, _ = json.Marshal(string(b)) // a string always encodes
	} else {
		raw, _ = json.Marshal(b) // and so do bytes
	}
	return raw
}

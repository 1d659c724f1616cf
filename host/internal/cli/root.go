package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const rootHelp = `skep hosts swarms of agents that work by mailing each other (MAIL 1.3).

A swarm is a file, swarm.toml: its agents, what they may do, and what one turn
of theirs may cost. An agent is a WebAssembly module in a sandbox, or a program of
your own in a jail.

Exit codes: 0 ok, 1 failed, 2 usage, 3 configuration, 4 not found, 5 refused,
6 refused by a limit of the host, 7 unreachable, 8 a module or a self-test failed
a check, 124 timeout, 130 interrupted.

With -o json a command prints one JSON object, or JSON lines, and says in the last
line of stderr why it failed: {"error":{"message":…,"code":…,"request_id":…}}.

Variables: SKEP_TOKEN is the token to send. SKEP_CONFIG, SKEP_DATA, SKEP_OUTPUT,
SKEP_URL, SKEP_TOKEN_FILE, SKEP_CA_FILE, SKEP_CLIENT_CERT and SKEP_CLIENT_KEY stand
for the flags of those names; a flag goes before its variable. NO_COLOR turns
colours off.`

const rootExample = `  skep validate                      check swarm.toml
  skep run "What is 6 times 7?"      one task, from start to answer
  skep serve                         stay up and take tasks over HTTP
  skep send "What is 6 times 7?"     a task for the host that runs`

// Groups of commands in the overview.
const (
	groupSwarm = "swarm"
	groupHost  = "host"
	groupCheck = "check"
	groupData  = "data"
)

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "skep", Short: "host agent swarms", Long: rootHelp, Example: rootExample,
		SilenceErrors: true, SilenceUsage: true,
		SuggestionsMinimumDistance: 2,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommandGroupID(groupCheck)
	root.SetCompletionCommandGroupID(groupCheck)
	root.AddGroup(
		&cobra.Group{ID: groupSwarm, Title: "Run a swarm:"},
		&cobra.Group{ID: groupHost, Title: "Talk to a running host:"},
		&cobra.Group{ID: groupData, Title: "Keep a host's data:"},
		&cobra.Group{ID: groupCheck, Title: "Look and check:"},
	)
	a.common.register(root.PersistentFlags())
	root.AddCommand(a.runCommand(), a.serveCommand(), a.withCallFlags(a.sendCommand()), a.taskCommand(), a.withCallFlags(a.topCommand()), a.withCallFlags(a.usageCommand()), a.withCallFlags(a.lookCommand()), a.withCallFlags(a.questionsCommand()), a.withCallFlags(a.answerCommand()),
		a.backupCommand(), a.restoreCommand(), a.migrateCommand(), a.tenantCommand(), a.keyringCommand(),
		a.withCallFlags(a.planCommand()), a.withCallFlags(a.reloadCommand()), a.clusterCommand(), a.logCommand(), a.tokenCommand(), a.peerCommand(), a.gatewayCommand(), a.auditCommand(), a.validateCommand(), a.mcpCommand(), a.acpCommand(), a.replayCommand(), a.doctorCommand(), a.withCallFlags(a.supportBundleCommand()), a.agentCommand(), a.newCommand(), a.versionCommand())
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			needsOneOf(cmd, cmd.Commands()) // otherwise a mistyped shell gets help, and success
		}
	}
	return root
}

// withCallFlags adds the flags with which a command finds a running host.
func (a *app) withCallFlags(cmd *cobra.Command) *cobra.Command {
	a.common.registerCalls(cmd.Flags())
	return cmd
}

// command wraps what a command does: flags are completed from the environment
// first, and from here on errors are not the fault of the command line. A DSN in SKEP_DATA is for
// other commands.
func (a *app) command(do func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return a.commandOnData(func(cmd *cobra.Command, args []string) error {
		if a.common.isServer() && a.common.setByFlag["data"] {
			return takesDirectory(cmd, "--data")
		}
		return do(cmd, args)
	})
}

// commandOnDir is command for one that reads or writes the data directory.
func (a *app) commandOnDir(do func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return a.command(func(cmd *cobra.Command, args []string) error {
		if a.common.isServer() {
			return takesDirectory(cmd, variable("data"))
		}
		return do(cmd, args)
	})
}

func takesDirectory(cmd *cobra.Command, name string) error {
	return usagef("%s takes a directory as %s, and a PostgreSQL server from [store] in swarm.toml", path(cmd), name)
}

// commandOnData is command for one whose --data may be a DSN.
func (a *app) commandOnData(do func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := a.common.complete(cmd.Flags(), a.env); err != nil {
			return err
		}
		a.ran = true
		return do(cmd, args)
	}
}

// group makes a command that only has others below it.
func group(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(below...)
	needsOneOf(cmd, below)
	return cmd
}

// needsOneOf makes a command refuse to be called without one of those below it.
func needsOneOf(cmd *cobra.Command, below []*cobra.Command) {
	cmd.Args = cobra.ArbitraryArgs // they are told of below
	// With flags of a command that is not there, the command is the news.
	cmd.FParseErrWhitelist = cobra.FParseErrWhitelist{UnknownFlags: true}
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("%s needs a command: %s", path(cmd), names(below))
		}
		f := usagef("unknown command %q for %q", args[0], cmd.CommandPath())
		suggest(f, cmd, args[0])
		if f.hint == "" {
			f.hint = path(cmd) + " takes " + names(below)
		}
		return f
	}
}

func names(cmds []*cobra.Command) string {
	text := ""
	for i, c := range cmds {
		switch {
		case i > 0 && i == len(cmds)-1:
			text += " or "
		case i > 0:
			text += ", "
		}
		text += c.Name()
	}
	return text
}

// exactArguments checks the number of arguments and names the one at fault.
func exactArguments(what ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(what) {
			return usagef("%s needs %s", path(cmd), what[len(args)])
		}
		return atMost(len(what))(cmd, args)
	}
}

// path is how a command is called, without the program's name.
func path(cmd *cobra.Command) string { return strings.TrimPrefix(cmd.CommandPath(), "skep ") }

// atMost checks that there are no more arguments than n.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		f := usagef("%s takes no argument %q", path(cmd), args[n])
		switch {
		case strings.HasSuffix(args[n], ".toml"):
			f.hint = "-c names the file of a swarm: -c " + args[n]
		case n > 0 && cmd.Flags().Lookup("agent") != nil && !cmd.Flags().Changed("agent"):
			f.hint = "--agent names an agent: --agent " + args[n]
		case n > 0:
			f.hint = "put quotes around an argument that has spaces"
		}
		return f
	}
}

// valueError names what a flag takes.
func valueError(e *pflag.InvalidValueError) error {
	flag, value := e.GetFlag(), e.GetValue()
	want := map[string]string{"int": "a whole number", "int64": "a whole number", "duration": "a time such as 90s or 10m", "bool": "true or false"}[flag.Value.Type()]
	if want == "" {
		return usagef("%w", e)
	}
	f := usagef("--%s takes %s, not %q", flag.Name, want, value)
	if _, err := strconv.ParseUint(value, 10, 32); err == nil && flag.Value.Type() == "duration" {
		f.hint = "did you mean --" + flag.Name + " " + value + "s?"
	}
	return f
}

// flagError puts a fault of a flag into our words, with the flag that was
// probably meant.
func flagError(cmd *cobra.Command, err error) error {
	f := &failure{code: exitUsage, err: err}
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		return valueError(value)
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return f
	}
	name := unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() != "" {
		f.err = fmt.Errorf("unknown flag -%s for %q", name, cmd.CommandPath())
		return f
	}
	f.err = fmt.Errorf("unknown flag --%s for %q", name, cmd.CommandPath())
	if slices.Contains(callFlags(), name) {
		f.err = fmt.Errorf("%s takes no --%s: it calls no running host", path(cmd), name)
		return f
	}
	if near := nearestFlag(cmd.Flags(), name); near != "" {
		f.hint = "did you mean --" + near + "?"
	}
	return f
}

package cli

import (
	"time"

	"github.com/spf13/cobra"

	"skep/host/client"
)

const logLevelHelp = `Level makes a running host log more, or less, for a while: debug, info, warn or error
and what is worse, of one component or of all. At the end of the time the level of its
file, [telemetry] log_level, counts again by itself; also at once when the host is
started again, as nothing of it is stored. Without LEVEL it shows what counts now, and
until when; the components are listed there. To end it early, set it anew with
--for 1s. Debug adds of api each request with its principal and address, and of runtime
and definitions what modules print when they start.

It takes an operator's key, is recorded in the audit log, and is for the host that
answers: others that share its store keep their levels. What is set anew replaces what
was set.`

const logLevelExample = `  skep log level
  skep log level debug --component router --for 10m
  skep log level -o json | jq -r '.set[] | .component + " " + .until'`

func (a *app) logCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "log", Short: "See and change what a running host logs", GroupID: groupHost,
		Long: `Log commands are about the log that a running host writes to its stderr.`,
	}, a.withCallFlags(a.logLevelCommand()))
}

func (a *app) logLevelCommand() *cobra.Command {
	var component string
	var length time.Duration
	cmd := &cobra.Command{
		Use: "level [LEVEL]", Short: "Show what is logged, or log more for a while", Args: atMost(1), Long: logLevelHelp, Example: logLevelExample,
	}
	cmd.Flags().StringVar(&component, "component", "", "only of this `COMPONENT`; all by default")
	cmd.Flags().DurationVar(&length, "for", 10*time.Minute, "for this `TIME`, from 1s to 24h")
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
		if len(args) == 0 {
			if cmd.Flags().Changed("component") || cmd.Flags().Changed("for") {
				return usagef("%s needs a LEVEL with --component and --for: debug, info, warn or error", path(cmd))
			}
			found, err := c.LogLevels(cmd.Context())
			if err != nil {
				return err
			}
			return a.printLogLevels(found)
		}
		if cmd.Flags().Changed("component") && component == "" {
			return usagef("--component is empty: name a component that %s lists, or leave it out for all", path(cmd))
		}
		if length < time.Second || length%time.Second != 0 {
			return usagef("--for takes whole seconds from 1s to 24h, not %s", length)
		}
		now, err := c.SetLogLevel(cmd.Context(), args[0], component, length)
		if err != nil {
			return err
		}
		return a.printLogLevels(now)
	})
	return cmd
}

func (a *app) printLogLevels(found client.LogLevels) error {
	if a.json() {
		return a.printJSON(found)
	}
	set := map[string]client.SetLogLevel{}
	for _, one := range found.Set {
		set[one.Component] = one
	}
	rows := [][]string{{"COMPONENT", "LEVEL", "UNTIL"}}
	for _, component := range found.Components {
		level, until := found.Level, "-"
		if one, is := set[component]; is {
			level, until = one.Level, localTime(one.Until)
		}
		rows = append(rows, []string{inLine(component), inLine(level), until})
	}
	if err := a.printColumns(rows); err != nil {
		return err
	}
	a.notef("the level of the file is %s; it counts at the end of a time, and when the host is started again", inLine(found.Level))
	return nil
}

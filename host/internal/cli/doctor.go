package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"skep/host/internal/isolation"
	"skep/host/internal/turn/process"
)

const isolationHelp = `Isolation starts a private host with two tenants on a free port of this machine,
lets one of them try everything against the other, and says what came of each
attempt: reading tasks, history, values and streams, cancelling, forging, using
up what both share. It needs no swarm.toml, touches no data of yours and leaves
nothing behind.

The exit code is 8 when an attempt comes to something.`

const isolationExample = `  skep doctor isolation
  skep doctor isolation -o json | jq .failed`

func (a *app) doctorCommand() *cobra.Command {
	below := &cobra.Command{
		Use: "isolation", Short: "Try whether tenants are kept apart",
		Long: isolationHelp, Example: isolationExample, Args: atMost(0),
	}
	below.RunE = a.command(func(cmd *cobra.Command, _ []string) error { return a.checkIsolation(cmd) })
	return a.doctorHostCommand(group(&cobra.Command{
		Use: "doctor", Short: "Look for what is wrong with a host", GroupID: groupCheck,
		Long: doctorHelp, Example: doctorExample,
	}, below, a.confinementCommand(), a.doctorGatewaysCommand(), a.doctorStoreCommand()))
}

const confinementHelp = `Processes says what confines the agents that are processes (exec:) on this machine,
for a host of this user: the kernel's restrictions of files and system calls, a root
directory of their own, and control groups for memory and threads.`

func (a *app) confinementCommand() *cobra.Command {
	var cgroup string
	cmd := &cobra.Command{
		Use: "processes", Short: "Show what confines processes on this machine",
		Long: confinementHelp, Example: "  skep doctor processes", Args: atMost(0),
	}
	cmd.Flags().StringVar(&cgroup, "cgroup", "", "the `PATH` of [limits] process_cgroup")
	cmd.RunE = a.command(func(*cobra.Command, []string) error {
		all, err := process.Confinements(cgroup)
		if err != nil {
			return err
		}
		if a.json() {
			return a.printJSON(map[string][]process.Confinement{"confinements": all})
		}
		return a.printf("%s", confinementText(all, a.dataStyle()))
	})
	return cmd
}

// confinementText has a line for every way of confinement.
func confinementText(all []process.Confinement, st style) string {
	var b strings.Builder
	for _, c := range all {
		word := st.green("yes")
		if !c.InForce {
			word = st.red("no ")
		}
		fmt.Fprintf(&b, "%s  %s  %s\n", word, pad(c.Name, len("own root")), printable(c.Detail))
	}
	return b.String()
}

func (a *app) checkIsolation(cmd *cobra.Command) error {
	p := &progress{app: a, patience: slowStep}
	defer p.stop()
	report, err := isolation.Run(cmd.Context(), isolation.Options{
		Plugins: a.env.Plugins, Bundled: a.env.Bundled, CacheDir: a.cacheDir(), Compiler: a.compiler(), Progress: p.begin,
	})
	p.stop()
	if err != nil {
		return fmt.Errorf("the self-test could not be made: %w", err)
	}
	if a.json() {
		err = a.printJSON(report)
	} else {
		err = a.printf("%s", isolationText(report, a.dataStyle()))
	}
	if err == nil && report.Failed > 0 {
		return reported(exitNonconforming)
	}
	return err
}

// attemptWidth is the column of the names of attempts.
const attemptWidth = 16

// isolationText has a line for every attempt, and below it what went wrong.
func isolationText(r isolation.Report, st style) string {
	var b strings.Builder
	for _, x := range r.Attempts {
		word := st.green("pass")
		if !x.Pass {
			word = st.red("FAIL")
		}
		fmt.Fprintf(&b, "%s  %s  %s\n", word, pad(x.Name, attemptWidth), printable(x.About))
		if x.Detail != "" {
			fmt.Fprintf(&b, "%s- %s\n", strings.Repeat(" ", attemptWidth+8), printable(x.Detail))
		}
	}
	fmt.Fprintf(&b, "%s came to nothing, %d did not\n", plural(int64(r.Passed), "attempt"), r.Failed)
	return b.String()
}

package cli

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"skep/host/internal/definition/config"
)

const runHelp = `Run starts a host for one task, posts BODY to the swarm's entrypoint, prints the
mail as it flows on stderr and the answer alone on stdout.

The host listens on a free port of this machine and keeps its data in a
temporary directory, so nothing is left behind. With --data the task is kept: a
run that was interrupted goes on when the same directory is used again, and a task
that waits for a person can be answered.

Without BODY the text is read from stdin.`

const runExample = `  skep run "What is 6 times 7?"
  skep run --timeout 30s "Summarise this" -c hive/swarm.toml
  cat report.txt | skep run > summary.txt
  skep run -o json "hello" | jq .usage`

func (a *app) runCommand() *cobra.Command {
	var flags postFlags
	cmd := &cobra.Command{
		Use: "run [BODY]", Short: "Run one task and print its answer", GroupID: groupSwarm,
		Long: runHelp, Example: runExample, Args: atMost(1),
	}
	flags.register(cmd)
	cmd.RunE = a.commandOnDir(func(cmd *cobra.Command, args []string) error { return a.run(cmd, flags, args) })
	return cmd
}

func (a *app) run(cmd *cobra.Command, flags postFlags, args []string) error {
	ctx := cmd.Context()
	body, err := a.readBody(ctx, cmd, "BODY", args)
	if err != nil {
		return err
	}
	post, err := flags.post(cmd, body)
	if err != nil {
		return err
	}
	cfg, err := a.loadConfig(true)
	if err != nil {
		return err
	}
	a.noteWarnings(warningsOf(cfg))
	a.noteModels(cfg)
	dir, remove, err := a.workDir()
	if err != nil {
		return err
	}
	defer remove()
	log := &briefLog{Handler: a.noteLogger(slog.LevelWarn).Handler(), more: a.noteSkippedLines}
	defer log.flush()
	h, token, err := a.newRunHost(ctx, cfg, dir, slog.New(log))
	if err != nil {
		return err
	}
	return runDuring(ctx, h, func(ctx context.Context) error {
		c, err := a.client("http://"+h.Addr(), token)
		if err != nil {
			return err
		}
		defer c.Close()
		err = a.converse(ctx, conversation{client: c, post: post, names: agentNames(cfg), keptHint: a.keptRunHint(), onSettled: log.flush, dataRemoved: a.common.data == ""})
		if errors.Is(err, errInterrupted) {
			a.notef("stopping; a second signal stops at once")
		}
		return err
	})
}

// keptRunHint is what becomes of the task of an interrupted run.
func (a *app) keptRunHint() string {
	if a.common.data == "" {
		return ""
	}
	return "a task that has not ended goes on when a host uses " + a.common.data + " again: `" + a.sameSwarm("skep serve") + "`"
}

// noteModels prints which models answer from a cassette, and which lack one.
func (a *app) noteModels(cfg *config.Config) {
	st := a.noteStyle()
	for _, m := range cfg.Models {
		if m.Cassette != "" && m.Provider != "script" && !a.json() {
			a.notef("%s %s  %s", st.dim("model"), st.bold(m.Name), inLine(m.Answering()))
		}
	}
}

func agentNames(cfg *config.Config) []string {
	names := make([]string, len(cfg.Agents))
	for i, agent := range cfg.Agents {
		names[i] = agent.Name
	}
	return names
}

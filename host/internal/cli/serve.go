package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"skep/host"
	"skep/host/internal/config"
)

const serveHelp = `Serve runs the swarm's host until it is told to stop.

The API is on [server] listen, health and metrics on admin_listen; both are on
this machine alone unless swarm.toml says otherwise. A file without
[[auth.keys]] gets an operator's key in the data directory, which commands on
this machine find by themselves.

The first Ctrl-C (or SIGTERM) lets running turns finish, at most for [server]
shutdown_grace; the second stops at once. Either way no accepted task is lost:
it goes on at the next start.`

const serveExample = `  skep serve
  skep serve -c hive/swarm.toml --data /var/lib/hive`

func (a *app) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "serve", Short: "Run the host until it is stopped", GroupID: groupSwarm,
		Long: serveHelp, Example: serveExample, Args: atMost(0),
		RunE: a.command(func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context()) }),
	}
}

func (a *app) serve(ctx context.Context) error {
	cfg, err := a.loadConfig()
	if err != nil {
		return err
	}
	log := a.logger(slog.LevelInfo)
	for _, w := range cfg.Warnings {
		log.Warn(w.Message, "file", w.File, "line", w.Line, "column", w.Col)
	}
	h, err := host.New(ctx, host.Options{
		Config: cfg, DataDir: a.dataDir(), CacheDir: a.env.Cache, Logger: log, Version: readVersions().Skep,
	})
	if err != nil {
		return err
	}
	if a.env.StderrTerminal {
		a.banner(cfg, h)
	}
	log.Info("serving", "address", "http://"+h.Addr(), "admin", h.AdminAddr(), "swarm", cfg.Swarm.Name,
		"entrypoint", cfg.Swarm.Entrypoint, "agents", len(cfg.Agents), "data", a.dataDir(), "operator_key", h.OperatorKeyPath())
	err = during(ctx, h, func(ctx context.Context) error {
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, errInterrupted) {
			return cause
		}
		log.Info("stopping: running turns may finish; a second signal stops at once", "grace", cfg.Server.ShutdownGrace.String())
		return nil
	})
	if err == nil {
		log.Info("stopped")
	}
	return err
}

// banner tells a person where everything is.
func (a *app) banner(cfg *config.Config, h *host.Host) {
	st := a.noteStyle()
	row := func(name, value string) {
		if value != "" {
			a.notef("  %s  %s", st.dim(pad(name, 6)), value)
		}
	}
	a.notef("%s  %s", st.bold("swarm "+cfg.Swarm.Name), st.dim(plural(int64(len(cfg.Agents)), "agent")+", entrypoint "+cfg.Swarm.Entrypoint))
	row("api", "http://"+h.Addr())
	if h.AdminAddr() != "" {
		row("admin", "http://"+h.AdminAddr())
	}
	row("data", a.dataDir())
	row("key", h.OperatorKeyPath())
	width := minNames
	for _, agent := range cfg.Agents {
		width = max(width, len(agent.Name))
	}
	for i, agent := range cfg.Agents {
		title := ""
		if i == 0 {
			title = "agents"
		}
		a.notef("  %s  %s  %s  %s", st.dim(pad(title, 6)), st.cyan(pad(agent.Name, width)), sourceText(agent.Source), st.dim(shortDigest(agent.Source.Path)))
	}
	row("try", `skep send "hello"`)
	a.notef("")
}

func sourceText(s config.Source) string { return string(s.Kind) + ":" + s.Ref }

// shortDigest gives the begin of a file's sha256, empty if it cannot be read.
func shortDigest(path string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return fmt.Sprintf("sha256:%s…", hex.EncodeToString(sum[:6]))
}

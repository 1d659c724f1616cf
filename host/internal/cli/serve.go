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
	"skep/host/internal/definition/config"
)

const serveHelp = `Serve runs the swarm's host until it is told to stop.

The API is on [server] listen, health and metrics on admin_listen; both are on
this machine alone unless swarm.toml says otherwise. For other machines it takes
[server.tls], or --plain-http where a proxy in front speaks TLS. A file without
[[auth.keys]] gets an operator's key in the data directory, which commands on this
machine find by themselves.

SIGHUP makes the host read its file and its certificate again, as "skep reload"
does; what cannot be taken over is logged, and the host goes on as it was.

The first Ctrl-C (or SIGTERM) lets running turns finish, at most for [server]
shutdown_grace, and /readyz answers 503; the second stops at once. Either way no
accepted task is lost: it goes on at the next start.`

const serveExample = `  skep serve
  skep serve -c hive/swarm.toml --data /var/lib/hive`

func (a *app) serveCommand() *cobra.Command {
	var plainHTTP bool
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the host until it is stopped", GroupID: groupSwarm,
		Long: serveHelp, Example: serveExample, Args: atMost(0),
	}
	plainHTTPFlag(cmd, &plainHTTP)
	cmd.RunE = a.commandOnDir(func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), plainHTTP) })
	return cmd
}

// plainHTTPFlag is for commands that serve, or judge what would be served.
func plainHTTPFlag(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "plain-http", false, "listen beyond this machine without TLS: a proxy in front speaks it")
}

func (a *app) serve(ctx context.Context, plainHTTP bool) error {
	cfg, err := a.loadConfig(plainHTTP)
	if err != nil {
		return err
	}
	log, level := a.serveLog(cfg.Telemetry)
	logWarnings(log, cfg)
	guests, back := host.ReserveProcessor()
	defer back()
	defer host.TuneGC()()
	hangups, ignore := a.hangups()
	defer ignore()
	h, err := a.newHost(ctx, host.Options{
		Config: cfg, DataDir: a.dataDir(), CacheDir: a.cacheDir(), Logger: log, Level: level, Version: readVersions().Skep,
		Compiler: a.compiler(), Subprocess: a.subprocess(), PlainHTTP: plainHTTP, Hangups: hangups, Guests: guests, Env: a.env.LookupEnv,
		Reread: func() (*config.Config, error) { return a.reloadConfig(log, plainHTTP) },
	})
	if err != nil {
		return err
	}
	if a.forPerson() {
		a.banner(cfg, h)
	}
	log.Info("serving", "address", h.URL(), "admin", h.AdminAddr(), "swarm", cfg.Swarm.Name,
		"entrypoint", cfg.Swarm.Entrypoint, "agents", len(cfg.Agents), "data", a.dataDir(), "operator_key", h.OperatorKeyPath())
	level.Set(cfg.Telemetry.Level())
	err = runDuring(ctx, h, func(ctx context.Context) error {
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

// logWarnings logs what is probably not meant in a file but works.
func logWarnings(log *slog.Logger, cfg *config.Config) {
	for _, w := range warningsOf(cfg) {
		log.Warn(w.Message, "file", w.File, "line", w.Line, "column", w.Col)
	}
}

// serveLog is the log of a host that starts. On a terminal a summary replaces the
// steps.
func (a *app) serveLog(t config.Telemetry) (*slog.Logger, *slog.LevelVar) {
	level, text := &slog.LevelVar{}, a.logsText(t)
	level.Set(t.Level())
	if a.forPerson() && text && level.Level() == slog.LevelInfo {
		level.Set(slog.LevelWarn)
	}
	return a.logger(text, level), level
}

// hangups are the signals that make a host reload.
func (a *app) hangups() (<-chan os.Signal, func()) {
	if a.env.Hangups == nil {
		return nil, func() {}
	}
	return a.env.Hangups()
}

// banner prints the addresses and paths of a host.
func (a *app) banner(cfg *config.Config, h *host.Host) {
	st, titles := a.noteStyle(), 7
	row := func(name, value string) {
		if value != "" {
			a.notef("  %s  %s", st.dim(pad(name, titles)), value)
		}
	}
	a.notef("%s  %s", st.bold("swarm "+cfg.Swarm.Name), st.dim(plural(int64(len(cfg.Agents)), "agent")+", entrypoint "+cfg.Swarm.Entrypoint))
	row("api", h.URL())
	if h.AdminAddr() != "" {
		row("admin", "http://"+h.AdminAddr())
	}
	row("data", a.dataDir())
	row("key", h.OperatorKeyPath())
	title, wide := "agents", minNames
	for _, agent := range cfg.Agents {
		wide = max(wide, len(agent.Name))
	}
	for _, agent := range cfg.Agents {
		row(title, st.cyan(pad(agent.Name, wide))+"  "+sourceText(agent.Source)+"  "+st.dim(shortDigest(agent.Source))+trustedMark(agent.Source, st))
		title = ""
	}
	title = "actions"
	for _, action := range cfg.Actions {
		if mark := trustedMark(action.Source, st); mark != "" {
			row(title, st.cyan(pad(action.Name, wide))+"  "+sourceText(action.Source)+"  "+st.dim(shortDigest(action.Source))+mark)
			title = ""
		}
	}
	title = "models"
	for _, m := range cfg.Models {
		row(title, st.cyan(pad(m.Name, wide))+"  "+m.Answering())
		title = ""
	}
	row("try", a.sameSwarm(`skep send "hello"`))
	row("stop", "Ctrl-C")
	a.notef("")
}

// sameSwarm adds to a command what makes it find this swarm.
func (a *app) sameSwarm(command string) string {
	for _, f := range [][2]string{{"config", a.common.config}, {"data", a.common.data}, {"url", a.common.url}} {
		if a.common.setByFlag[f[0]] {
			command += " --" + f[0] + " " + f[1]
		}
	}
	return command
}

// trustedMark marks an agent or action that runs outside the sandbox.
func trustedMark(s config.Source, st style) string {
	if s.Kind != config.SourceExec {
		return ""
	}
	return "  " + st.red("process (trusted)")
}

func sourceText(s config.Source) string { return string(s.Kind) + ":" + s.Ref }

// shortDigest is the begin of the sha256 of a source's file, empty if it cannot be read.
func shortDigest(s config.Source) string {
	read := func(string) ([]byte, error) { return os.ReadFile(s.Path) }
	if s.Bundle != nil {
		read = s.Bundle.Read
	}
	raw, err := read(s.Ref)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return fmt.Sprintf("sha256:%s…", hex.EncodeToString(sum[:6]))
}

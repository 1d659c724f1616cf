package host

import (
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"skep/host/internal/definition/config"
	"skep/host/internal/gateway"
	"skep/host/internal/turn/egress"
)

// Options of [New].
type Options struct {
	// Config is required.
	Config *config.Config
	// DataDir holds the store, .skep beside the configuration by default.
	DataDir string
	// CacheDir holds compiled modules, DataDir/cache by default.
	CacheDir string
	// Listen and AdminListen override the configuration's addresses; an
	// AdminListen of "off" opens no admin listener. Defaults of the configuration that go by its
	// own addresses stay, as look of [console].
	Listen, AdminListen string
	// PlainHTTP lets other machines call without TLS.
	PlainHTTP bool
	// Hangups trigger a reload of the configuration and of the TLS certificate. It
	// may be nil.
	Hangups <-chan os.Signal
	// Logger is the host's log; nil discards it.
	Logger *slog.Logger
	// Level is the Logger's. A reload sets it to the configured level; nil leaves
	// the Logger's as it is.
	Level *slog.LevelVar
	// Subprocess is the start of the command line of the process between the host
	// and a subprocess: the program's own file and the Command of package process.
	// Empty refuses exec: sources.
	Subprocess []string
	// Compiler is the command line of a child process that compiles modules which
	// are not bundled, see Child of package wasm; empty compiles them in this
	// process.
	Compiler []string
	// Guests bounds the guests that compute at once, GOMAXPROCS by default. See
	// [ReserveProcessor].
	Guests int
	// Reread reads the configuration again for a reload; nil refuses reloads.
	Reread func() (*config.Config, error)
	// Env looks up the variables with tokens of registered swarms; nil has none.
	Env func(name string) (string, bool)
	// Version is shown to clients.
	Version string
	// Network changes the HTTP clients of agents, models and MCP servers: where names
	// lead and what is dialled. Nil leaves them as they are. Tests set it, which have no
	// Internet.
	Network func(*egress.Options)
	// Ping is the longest silence on a stream, and how soon a revoked token ends it; 0 is
	// 15 s. Tests set it.
	Ping time.Duration
	// Gateways makes gateways besides those of this build, by the names of their tables,
	// which config.Options has too. Tests set it.
	Gateways map[string]NewGateway
	// Runtime changes what a gateway gets of the host. Nil leaves it as it is; tests set it.
	Runtime func(gateway string, rt gateway.Runtime) gateway.Runtime
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Level == nil {
		o.Level = &slog.LevelVar{}
		o.Level.Set(o.Config.Telemetry.Level())
	}
	if o.DataDir == "" {
		o.DataDir = filepath.Join(o.Config.Dir, ".skep")
	}
	if o.CacheDir == "" {
		o.CacheDir = filepath.Join(o.DataDir, "cache")
	}
	return o
}

package cli

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"skep/host/internal/definition/config"
)

// loadConfig reads the swarm's file. plainHTTP is for those who serve no other
// machine, or only a proxy that speaks TLS.
func (a *app) loadConfig(plainHTTP bool) (*config.Config, error) {
	return a.readConfig(plainHTTP, time.Now())
}

// reloadConfig reads the file for a running host: its certificate is in use already,
// and the listener watches the files itself. The log gets the warnings.
func (a *app) reloadConfig(log *slog.Logger, plainHTTP bool) (*config.Config, error) {
	cfg, err := a.readConfig(plainHTTP, time.Time{})
	if err == nil {
		logWarnings(log, cfg)
	}
	return cfg, err
}

func (a *app) readConfig(plainHTTP bool, now time.Time) (*config.Config, error) {
	return a.readConfigWith(a.env.LookupEnv, plainHTTP, now)
}

// readConfigWith is readConfig with other variables.
func (a *app) readConfigWith(lookup func(name string) (string, bool), plainHTTP bool, now time.Time) (*config.Config, error) {
	c, err := config.Load(a.common.config, config.Options{Env: lookup, BundleDir: a.env.Plugins, Bundled: a.env.Bundled, PlainHTTP: plainHTTP, Now: now})
	if err != nil {
		return nil, a.unreadable(err)
	}
	return c, nil
}

// unreadable explains why the swarm's file cannot be read. Its faults stay as they
// are.
func (a *app) unreadable(err error) error {
	var faults config.Faults
	if errors.As(err, &faults) {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		f := failf(exitNotFound, "there is no file %s", resolvedPath(a.common.config))
		if near := config.NearFile(a.common.config); near != "" {
			return f.help("did you mean -c %s?", filepath.Join(filepath.Dir(a.common.config), near))
		}
		if a.common.set["config"] {
			return f
		}
		return f.help("go to the directory of a swarm, or name its file with -c FILE")
	}
	if info, stat := os.Stat(a.common.config); stat == nil && info.IsDir() {
		return failf(exitConfig, "%s is a directory", a.common.config).help(
			"name the file in it: -c %s", filepath.Join(a.common.config, "swarm.toml"))
	}
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = cause.Err
	}
	return failf(exitConfig, "%s cannot be read: %w", a.common.config, err)
}

// resolvedPath is a path as it was given, and behind it where that leads.
func resolvedPath(path string) string {
	full, err := filepath.Abs(path)
	if err != nil || full == path {
		return path
	}
	return path + " (" + full + ")"
}

// isServer reports whether --data is a DSN, or names one.
func (c *common) isServer() bool { return isDSN(c.data) }

// dataDir is where a host keeps its data.
func (a *app) dataDir() string {
	if a.common.data != "" && !a.common.isServer() {
		return a.common.data
	}
	return filepath.Join(filepath.Dir(a.common.config), ".skep")
}

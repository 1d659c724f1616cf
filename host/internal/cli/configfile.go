package cli

import (
	"errors"
	"io/fs"
	"path/filepath"

	"skep/host/internal/config"
)

// loadConfig reads the swarm's file.
func (a *app) loadConfig() (*config.Config, error) {
	c, err := config.Load(a.common.config, config.Options{Env: a.env.LookupEnv, BundleDir: a.env.Plugins})
	if errors.Is(err, fs.ErrNotExist) {
		f := failf(exitNotFound, "there is no file %s", a.common.config)
		if a.common.given["config"] {
			return nil, f
		}
		return nil, f.help("go to the directory of a swarm, or name its file with -c FILE")
	}
	return c, err
}

// dataDir is where a host keeps its data.
func (a *app) dataDir() string {
	if a.common.data != "" {
		return a.common.data
	}
	return filepath.Join(filepath.Dir(a.common.config), ".skep")
}

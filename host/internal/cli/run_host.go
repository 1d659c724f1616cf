package cli

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"skep/host"
	"skep/host/internal/definition/config"
	"skep/host/internal/pathcheck"
	"skep/host/internal/turn"
)

// errStopped is the cause when a host ends without a signal.
var errStopped = errors.New("the host has stopped")

// runDuring runs a host while do works with it, and waits until it has drained.
func runDuring(ctx context.Context, h *host.Host, do func(ctx context.Context) error) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	done := make(chan error, 1)
	go func() {
		err := h.Run(serving)
		lost(errStopped)
		done <- err
	}()
	err := do(ctx)
	if errors.Is(err, errStopped) {
		return errors.Join(err, <-done)
	}
	stop()
	return errors.Join(err, <-done)
}

// newRunHost makes the host of one run: a free port of this machine, no admin
// listener.
func (a *app) newRunHost(ctx context.Context, cfg *config.Config, dir string, log *slog.Logger) (h *host.Host, token string, err error) {
	cfg, token = a.addRunKey(cfg)
	if a.common.data == "" {
		// What is drained is thrown away with the directory.
		brief := *cfg
		brief.Server.ShutdownGrace = min(brief.Server.ShutdownGrace, time.Second)
		cfg = &brief
	}
	plain := *cfg
	plain.Server.TLS = config.TLS{} // nobody else calls, and no certificate names the address
	h, err = a.newHost(ctx, host.Options{
		Config: &plain, DataDir: dir, CacheDir: a.cacheDir(), Listen: "127.0.0.1:0", AdminListen: "off",
		Logger: log, Version: readVersions().Skep, Compiler: a.compiler(), Subprocess: a.subprocess(), Env: a.env.LookupEnv,
	})
	if err != nil || token != "" {
		return h, token, err
	}
	token, err = readToken(h.OperatorKeyPath())
	if err != nil {
		return nil, "", errors.Join(err, h.Close())
	}
	return h, token, nil
}

// newHost makes a host. It reports the faults of a file that makes none as validate does.
func (a *app) newHost(ctx context.Context, opt host.Options) (*host.Host, error) {
	h, err := host.New(ctx, opt)
	var faults config.Faults
	var module *turn.LoadError
	var weak *pathcheck.Error
	if !errors.As(err, &faults) && !errors.As(err, &module) && !errors.As(err, &weak) && !errors.Is(err, fs.ErrNotExist) {
		return h, err
	}
	if v, failed := a.checkFile(ctx, opt.Config); failed == nil && len(v.Faults) > 0 {
		return nil, &failure{code: v.code, err: v.Faults}
	}
	return nil, err // nothing that can be seen without starting a program
}

// addRunKey adds a key for this run to a configuration with keys, unless the caller
// holds one of them. Without keys the host makes the operator's key.
func (a *app) addRunKey(cfg *config.Config) (_ *config.Config, token string) {
	if len(cfg.Auth.Keys) == 0 {
		return cfg, ""
	}
	if token := a.envToken(); hasKey(cfg, token) {
		return cfg, token
	}
	b := make([]byte, 32)
	rand.Read(b) // never fails
	token = "skep_run_" + base64.RawURLEncoding.EncodeToString(b)
	own := *cfg
	own.Auth.Keys = append(slices.Clone(cfg.Auth.Keys), config.AuthKey{
		ID: "skep-run", Role: config.RoleUser, SHA256: sha256.Sum256([]byte(token)),
	})
	return &own, token
}

// hasKey reports whether a token is one of a configuration's keys.
func hasKey(cfg *config.Config, token string) bool {
	digest := sha256.Sum256([]byte(token))
	return slices.ContainsFunc(cfg.Auth.Keys, func(k config.AuthKey) bool { return k.SHA256 == digest })
}

// cacheDir is where compiled modules are kept, empty where there is no place that
// lasts.
func (a *app) cacheDir() string {
	if a.env.Cache == "" || os.MkdirAll(a.env.Cache, 0o700) != nil {
		return ""
	}
	return a.env.Cache
}

// workDir is the data directory of a run: the one that was named, or one that
// is removed afterwards.
func (a *app) workDir() (dir string, remove func(), err error) {
	if a.common.data != "" {
		return a.common.data, func() {}, nil
	}
	sweepRunDirs()
	dir, clear, err := makeRunDir()
	if err != nil {
		return "", nil, err
	}
	return dir, func() {
		if err := clear(); err != nil {
			a.notef("skep: the temporary data directory stays behind: %v", err)
		}
	}, nil
}

// maxToken is the largest file that is taken for a token.
const maxToken = 64 << 10

func readToken(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxToken {
		return "", failf(exitUsage, "%s is not a file that holds a token", path)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(raw))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", failf(exitUsage, "%s does not hold one token", path)
	}
	return token, nil
}

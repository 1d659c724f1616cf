package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"skep/host"
	"skep/host/internal/config"
	"skep/host/internal/guests"
	"skep/host/internal/subprocess"
)

// scratch makes a directory; remove takes it away with all that is in it.
func scratch() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp("", "skep-bench")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// parse reads a configuration that lies in dir.
func parse(swarm, dir string) (*config.Config, error) {
	return config.Parse("bench.toml", []byte(swarm), dir, config.Options{BundleDir: filepath.Join(guests.Root(), "bin", "plugins")})
}

// serve runs a host in this process with its data below dir, which must not go
// before stop has returned.
func serve(ctx context.Context, swarm, dir string) (url string, stop func(), err error) {
	return serveOn(ctx, swarm, dir, filepath.Join(dir, "data"))
}

// serveOn is serve with the data elsewhere.
func serveOn(ctx context.Context, swarm, dir, data string) (url string, stop func(), err error) {
	return serveFor(ctx, swarm, dir, data, 0)
}

// serveFor is serveOn for a number of guests that compute at once, see
// [host.Room].
func serveFor(ctx context.Context, swarm, dir, data string, computing int) (url string, stop func(), err error) {
	cfg, err := parse(swarm, dir)
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	h, err := host.New(ctx, host.Options{
		Config: cfg, DataDir: data, CacheDir: cacheDir(), Listen: "127.0.0.1:0", AdminListen: "off",
		Guests: computing, Subprocess: []string{"/proc/self/exe", subprocess.Command},
	})
	if err != nil {
		cancel()
		return "", nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := h.Run(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "bench: host:", err)
		}
	}()
	return "http://" + h.Addr(), func() { cancel(); <-done }, nil
}

// serveApart runs a host in a process of its own.
func serveApart(ctx context.Context, swarm string) (url string, stop func(), err error) {
	a, err := hostApart(ctx, swarm)
	if err != nil {
		return "", nil, err
	}
	return a.url, a.stop, nil
}

func hostApart(ctx context.Context, swarm string, env ...string) (*apart, error) {
	dir, remove, err := scratch()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "bench.toml"), []byte(swarm), 0o600); err != nil {
		remove()
		return nil, err
	}
	a, err := startApartIn(ctx, env, "host", dir)
	if err != nil {
		remove()
		return nil, err
	}
	a.after = remove
	return a, nil
}

// hostHere runs a host until the parent closes in, or is gone.
func hostHere(ctx context.Context, dir string, in io.Reader) error {
	text, err := os.ReadFile(filepath.Join(dir, "bench.toml"))
	if err != nil {
		return err
	}
	computing, back := host.Room()
	defer back()
	defer host.Slack()()
	url, stop, err := serveFor(ctx, string(text), dir, filepath.Join(dir, "data"), computing)
	if err != nil {
		return err
	}
	defer stop()
	return serving(url, in)
}

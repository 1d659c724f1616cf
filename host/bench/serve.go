package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"skep/host"
	"skep/host/internal/config"
	"skep/host/internal/guests"
)

// scratch makes a directory; remove takes it away with all that is in it.
func scratch() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp("", "skep-bench")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// serve runs a host in this process with its data below dir, which must not go
// before stop has returned.
func serve(ctx context.Context, swarm, dir string) (url string, stop func(), err error) {
	return serveOn(ctx, swarm, dir, filepath.Join(dir, "data"))
}

// serveOn is serve with the data elsewhere.
func serveOn(ctx context.Context, swarm, dir, data string) (url string, stop func(), err error) {
	cfg, err := config.Parse("bench.toml", []byte(swarm), dir, config.Options{BundleDir: filepath.Join(guests.Root(), "bin", "plugins")})
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	h, err := host.New(ctx, host.Options{
		Config: cfg, DataDir: data, CacheDir: cacheDir(), Listen: "127.0.0.1:0", AdminListen: "off",
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

// serveApart runs a host in a process of its own, so that clients and it meet as
// they would outside.
func serveApart(ctx context.Context, swarm string) (url string, stop func(), err error) {
	dir, remove, err := scratch()
	if err != nil {
		return "", nil, err
	}
	defer func() {
		if err != nil {
			remove()
		}
	}()
	if err := os.WriteFile(filepath.Join(dir, "bench.toml"), []byte(swarm), 0o600); err != nil {
		return "", nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, self, childCommand, "host", dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() { _ = in.Close(); _, _ = io.Copy(io.Discard, out); _ = cmd.Wait(); remove() }
	if _, err := fmt.Fscanln(out, &url); err != nil {
		stop()
		return "", nil, fmt.Errorf("start a host in a child: %w", err)
	}
	return url, stop, nil
}

// hostHere runs a host until the parent closes in, or is gone.
func hostHere(ctx context.Context, dir string, in io.Reader) error {
	text, err := os.ReadFile(filepath.Join(dir, "bench.toml"))
	if err != nil {
		return err
	}
	url, stop, err := serve(ctx, string(text), dir)
	if err != nil {
		return err
	}
	defer stop()
	fmt.Println(url)
	_, err = io.Copy(io.Discard, in)
	return err
}

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"skep/host"
	"skep/host/internal/definition/config"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest/toy"
	"skep/host/internal/guests"
	"skep/host/internal/turn/process"
)

// scratch makes a directory; remove deletes it with its content.
func scratch() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp("", "skep-bench")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// parse reads a configuration that lies in dir.
func parse(swarm, dir string) (*config.Config, error) {
	return config.Parse("bench.toml", []byte(swarm), dir, config.Options{
		BundleDir: filepath.Join(guests.Root(), "bin", "plugins"), Gateways: []string{toy.Name},
	})
}

// runHost runs a host in this process, with its data in a directory that must
// exist until stop has returned. computing is how many guests compute at once; 0 is
// the default of the host.
func runHost(ctx context.Context, swarm, data string, computing int) (url string, stop func(), err error) {
	return runHostAt(ctx, swarm, data, "127.0.0.1:0", computing)
}

// runHostAt is runHost at an address.
func runHostAt(ctx context.Context, swarm, data, listen string, computing int) (url string, stop func(), err error) {
	admin := "off"
	if strings.Contains(swarm, "admin_listen") {
		admin = "" // it is the file's
	}
	cfg, err := parse(swarm, filepath.Dir(data))
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	h, err := host.New(ctx, host.Options{
		Config: cfg, DataDir: data, CacheDir: cacheDir(), Listen: listen, AdminListen: admin,
		Guests: computing, Subprocess: []string{"/proc/self/exe", process.Command},
		Gateways: map[string]host.NewGateway{toy.Name: openToy},
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

// openToy makes the gateway of the line protocol that the contract of gateways is tested
// with: it costs what all gateways share, and next to nothing besides.
func openToy(rt gateway.Runtime, g config.Gateway) (gateway.Gateway, error) {
	return toy.New(rt, toy.Options{Hold: g.Hold, MaxBody: int64(g.MaxBody), MaxDepth: g.MaxDepth}), nil
}

// runTemporaryHost is runHost with data that stop removes.
func runTemporaryHost(ctx context.Context, swarm string, computing int) (url string, stop func(), err error) {
	dir, remove, err := scratch()
	if err != nil {
		return "", nil, err
	}
	url, end, err := runHost(ctx, swarm, filepath.Join(dir, "data"), computing)
	if err != nil {
		remove()
		return "", nil, err
	}
	return url, func() { end(); remove() }, nil
}

// startHost runs a host in a child.
func startHost(ctx context.Context, swarm string, env ...string) (*child, error) {
	return startHostAt(ctx, swarm, "127.0.0.1:0", env...)
}

// startHostAt is startHost at an address.
func startHostAt(ctx context.Context, swarm, listen string, env ...string) (*child, error) {
	dir, remove, err := scratch()
	if err != nil {
		return nil, err
	}
	err = os.WriteFile(filepath.Join(dir, "bench.toml"), []byte(swarm), 0o600)
	var c *child
	if err == nil {
		c, err = startServer(ctx, env, "host", dir, listen)
	}
	if err != nil {
		remove()
		return nil, err
	}
	c.after = remove
	return c, nil
}

// hostJob runs a host as the program does.
func hostJob(ctx context.Context, p pipe, args []string) error {
	text, err := os.ReadFile(filepath.Join(args[0], "bench.toml"))
	if err != nil {
		return err
	}
	computing, restore := hostProcess()
	defer restore()
	url, stop, err := runHostAt(ctx, string(text), filepath.Join(args[0], "data"), args[1], computing)
	if err != nil {
		return err
	}
	defer stop()
	return p.serve(url)
}

// hostProcess sets this process up as the program does, and returns how many guests
// may compute at once.
func hostProcess() (computing int, restore func()) {
	computing, back := host.ReserveProcessor()
	collect := host.TuneGC()
	return computing, func() { collect(); back() }
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"skep/host/internal/sandbox"
)

// childCommand is the first argument of this program where it measures something
// in a process that has done nothing else.
const childCommand = "in-child"

// measured is what a child prints.
type measured struct {
	Seconds float64 `json:"seconds"`
	Memory  float64 `json:"memory"`
	// Stopped says why a load was given up.
	Stopped string `json:"stopped,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Bounds of a child that loads a module.
const (
	loadWall   = 10 * time.Second
	loadMemory = 2 << 30
)

// child runs in the other process. It returns its exit code.
func child(ctx context.Context, args []string) int {
	var m measured
	var err error
	switch args[0] {
	case "load":
		m, err = loadHere(ctx, os.Stdin)
	case "warm":
		m, err = warmHere(ctx, args[1:])
	case "client":
		if err = clientHere(os.Stdin, os.Stdout); err == nil {
			return 0
		}
	case "attack":
		if err = attackHere(args[1:], os.Stdin, os.Stdout); err == nil {
			return 0
		}
	case "host":
		err = hostHere(ctx, args[1], os.Stdin)
	case "a2a":
		err = a2aHere(ctx, os.Stdin)
	case "bare":
		err = bareHere(os.Stdin)
	case "provider":
		err = providerHere(os.Stdin)
	case "asker":
		err = askerHere(ctx, args[1:], os.Stdin)
	case "side":
		err = bareSideHere(args[1:], os.Stdin)
	default:
		err = fmt.Errorf("no measurement %q", args[0])
	}
	if err != nil {
		m.Error = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(m); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

// inChild runs a measurement in a process of its own.
func inChild(ctx context.Context, in []byte, args ...string) (m measured, err error) {
	self, err := os.Executable()
	if err != nil {
		return m, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{childCommand}, args...)...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return m, fmt.Errorf("measure %s in a child: %w", args[0], err)
	}
	if err := json.Unmarshal(out, &m); err != nil {
		return m, fmt.Errorf("measure %s in a child: %w", args[0], err)
	}
	if m.Error != "" {
		return m, errors.New(m.Error)
	}
	return m, nil
}

// loadHere loads the module that it reads, without a cache, and measures time and
// by how much the process's memory was higher at its highest.
func loadHere(ctx context.Context, in io.Reader) (m measured, err error) {
	wasm, err := io.ReadAll(in)
	if err != nil {
		return m, err
	}
	engine, err := sandbox.New(ctx, sandbox.Options{})
	if err != nil {
		return m, err
	}
	before, err := status("VmHWM")
	if err != nil {
		return m, err
	}
	start := time.Now()
	done := make(chan error, 1)
	go func() {
		_, err := engine.Load(ctx, sandbox.Source{Name: "measured", Wasm: wasm, Trusted: true})
		done <- err
	}()
	m.Stopped, err = watch(done, start)
	m.Seconds = time.Since(start).Seconds()
	if err != nil {
		return m, err
	}
	after, err := status("VmHWM")
	m.Memory = after - before
	return m, err
}

// watch waits for a load, or says why it waits no longer; the process ends soon.
func watch(done <-chan error, start time.Time) (stopped string, err error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return "", err
		case <-tick.C:
		}
		rss, err := status("VmRSS")
		switch {
		case err != nil:
			return "", err
		case rss > loadMemory:
			return fmt.Sprintf("more than %d MiB", loadMemory>>20), nil
		case time.Since(start) > loadWall:
			return fmt.Sprintf("longer than %v", loadWall), nil
		}
	}
}

// loadElsewhere loads a module in a process of its own.
func loadElsewhere(ctx context.Context, wasm []byte) (cost, error) {
	m, err := inChild(ctx, wasm, "load")
	n := float64(len(wasm))
	return cost{m.Seconds / n, m.Memory / n, m.Stopped}, err
}

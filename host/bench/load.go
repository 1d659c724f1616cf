package main

import (
	"context"
	"fmt"
	"time"

	"skep/host/internal/turn/wasm"
)

// measured is what a child reports of its one measurement.
type measured struct {
	Seconds float64 `json:"seconds"`
	Memory  float64 `json:"memory"`
	// Stopped is why a load was given up.
	Stopped string `json:"stopped,omitempty"`
}

// Bounds of a child that loads a module.
const (
	loadWall   = 10 * time.Second
	loadMemory = 2 << 30
)

// loadJob loads the module of its one request.
func loadJob(ctx context.Context, p pipe, _ []string) error {
	var wasmBytes []byte
	if err := p.from.Decode(&wasmBytes); err != nil {
		return err
	}
	m, err := measureLoad(ctx, wasmBytes)
	if err != nil {
		return err
	}
	return p.sendReply(m)
}

// measureLoad loads a module without a cache. It measures the time, and by how much
// the peak of the process's memory rose.
func measureLoad(ctx context.Context, wasmBytes []byte) (m measured, err error) {
	engine, err := wasm.New(ctx, wasm.Options{})
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
		_, err := engine.Load(ctx, wasm.Source{Name: "measured", Wasm: wasmBytes, Trusted: true})
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

// watch waits for a load, or returns why it gave up; the process ends soon after.
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

// loadInChild loads a module in a process of its own.
func loadInChild(ctx context.Context, wasmBytes []byte) (cost, error) {
	m, err := measureInChild(ctx, wasmBytes, "load")
	n := float64(len(wasmBytes))
	return cost{m.Seconds / n, m.Memory / n, m.Stopped}, err
}

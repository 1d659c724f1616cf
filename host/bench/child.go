package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"syscall"
)

// childCommand is the first argument of this program where it runs one job in a
// process of its own.
const childCommand = "in-child"

// childJob is what a child does. It ends with an error, or with io.EOF when the
// parent has closed the pipe or is gone.
type childJob func(ctx context.Context, p pipe, args []string) error

func childJobs() map[string]childJob {
	return map[string]childJob{
		"load": loadJob, "warm": warmJob, "client": clientJob, "attack": attackJob, "host": hostJob,
		"a2a": a2aJob, "bare": bareJob, "provider": providerJob, "asker": askerJob, "relay": relayJob,
		"large": largeJob, "reader": readerJob,
	}
}

// runChild runs in the child and returns its exit code.
func runChild(ctx context.Context, args []string) int {
	p := pipe{json.NewEncoder(os.Stdout), json.NewDecoder(os.Stdin)}
	err := fmt.Errorf("no job %q", args[0])
	if job := childJobs()[args[0]]; job != nil {
		err = job(ctx, p, args[1:])
	}
	if err == nil || errors.Is(err, io.EOF) {
		return 0
	}
	if err := p.to.Encode(reply{Error: err.Error()}); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	return 1
}

// pipe carries JSON values between a parent and its child: requests one way and
// replies the other way.
type pipe struct {
	to   *json.Encoder
	from *json.Decoder
}

// reply is what a child sends. To decode one, Value is a pointer.
type reply struct {
	Value any
	Error string
}

func (p pipe) sendReply(value any) error { return p.to.Encode(reply{Value: value}) }

// receiveReply decodes the next reply into value, a pointer.
func (p pipe) receiveReply(value any) error {
	r := reply{Value: value}
	if err := p.from.Decode(&r); err != nil {
		return fmt.Errorf("no reply of a child: %w", err)
	}
	if r.Error != "" {
		return errors.New(r.Error)
	}
	return nil
}

// call sends a request and waits for its reply.
func (p pipe) call(request, value any) error {
	if err := p.to.Encode(request); err != nil {
		return err
	}
	return p.receiveReply(value)
}

// statsRequest is what a child that serves is requested for. With Free it returns
// unused memory to the system first.
type statsRequest struct{ Free bool }

// runtimeStats are the memory of a child, in bytes, and its goroutines. Heap and
// Stacks are in use; Go is all that the Go runtime has of the system.
type runtimeStats struct {
	Heap, Stacks, Go float64
	Goroutines       int
}

// serve is the loop of a child that serves: it sends its address, and then its
// memory for each request.
func (p pipe) serve(url string) error {
	err := p.sendReply(url)
	for err == nil {
		var r statsRequest
		if err = p.from.Decode(&r); err == nil {
			err = p.sendReply(readRuntimeStats(r.Free))
		}
	}
	return err
}

func readRuntimeStats(free bool) runtimeStats {
	collect := runtime.GC
	if free {
		collect = debug.FreeOSMemory
	}
	collect()
	collect() // sync.Pool drops the rest in the second collection
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtimeStats{float64(m.HeapAlloc), float64(m.StackInuse), float64(m.Sys - m.HeapReleased), runtime.NumGoroutine()}
}

// child is this program in a process of its own, so that it shares neither memory,
// scheduler nor connections with its parent. It serves one goroutine.
type child struct {
	pipe
	url string // where it serves, empty for a child that serves nothing
	in  io.Closer
	out io.Reader
	cmd *exec.Cmd
	// after, if set, removes what the child has left.
	after func()
}

// startChild starts a job, with env added to its environment.
func startChild(ctx context.Context, env []string, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{childCommand}, args...)...)
	cmd.Stderr, cmd.Env = os.Stderr, append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c := &child{pipe: pipe{json.NewEncoder(in), json.NewDecoder(out)}, in: in, out: out, cmd: cmd}
	return c, cmd.Start()
}

// startServer starts a job that serves, and waits for its address.
func startServer(ctx context.Context, env []string, args ...string) (*child, error) {
	c, err := startChild(ctx, env, args...)
	if err != nil {
		return nil, err
	}
	if err := c.receiveReply(&c.url); err != nil {
		c.stop()
		return nil, fmt.Errorf("start %s in a child: %w", args[0], err)
	}
	return c, nil
}

// measureInChild runs a job of one request in a process that has done nothing else.
func measureInChild(ctx context.Context, request any, job string) (m measured, err error) {
	c, err := startChild(ctx, nil, job)
	if err != nil {
		return m, err
	}
	defer c.stop()
	if err := c.call(request, &m); err != nil {
		return m, fmt.Errorf("measure %s in a child: %w", job, err)
	}
	return m, nil
}

// lowestPriority is the nice value of children that stand for other machines.
const lowestPriority = 19

// lowerPriority lets a child that stands for another machine take little from the
// processes under test.
func (c *child) lowerPriority() error {
	// The group, because a priority belongs to a thread.
	return syscall.Setpriority(syscall.PRIO_PGRP, c.cmd.Process.Pid, lowestPriority)
}

// stop ends the child and waits for it.
func (c *child) stop() {
	_ = c.in.Close()
	_, _ = io.Copy(io.Discard, c.out)
	_ = c.cmd.Wait()
	if c.after != nil {
		c.after()
	}
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// memory is what the child has in use on heap and stacks, and in resident memory,
// in bytes.
func (c *child) memory() (n [2]float64, err error) {
	var s runtimeStats
	if err := c.call(statsRequest{}, &s); err != nil {
		return n, err
	}
	n[0] = s.Heap + s.Stacks
	n[1], err = statusOf(c.pid(), "VmRSS")
	return n, err
}

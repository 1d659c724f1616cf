package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Ways of an attacker.
const (
	slowHeaders = "slowloris"
	tooLarge    = "oversize"
)

// again is how long an attacker's connection stays away after it was cut.
const again = time.Second

// attacker is a process of its own that holds as many connections to a host as it
// can, from as many addresses of this machine. It gives way to all others, because
// it stands for other machines.
type attacker struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// harm is what an attacker did.
type harm struct{ Connections, Cut int64 }

func startAttacker(ctx context.Context, kind, url string, connections int) (*attacker, error) {
	c, err := startChild(ctx, "attack", kind, strings.TrimPrefix(url, "http://"), strconv.Itoa(connections))
	if err != nil {
		return nil, err
	}
	// The group, because a priority is a thread's.
	if err := syscall.Setpriority(syscall.PRIO_PGRP, c.cmd.Process.Pid, lowest); err != nil {
		_, _ = c.stop()
		return nil, err
	}
	return c, nil
}

func startChild(ctx context.Context, args ...string) (*attacker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{childCommand}, args...)...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &attacker{cmd, in, json.NewDecoder(out)}, cmd.Start()
}

// stop ends the attack.
func (a *attacker) stop() (h harm, err error) {
	_ = a.in.Close()
	err = a.out.Decode(&h)
	return h, errors.Join(err, a.cmd.Wait())
}

// attackHere is the attacker's process. It ends with in.
func attackHere(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 3 {
		return fmt.Errorf("attack takes a way, an address and a number, not %q", args)
	}
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var opened, cut atomic.Int64
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			// From here and there, and not all in one moment.
			from := &net.TCPAddr{IP: net.IPv4(127, 2, byte(i>>8), byte(i))}
			pause(ctx, again*time.Duration(i)/time.Duration(n))
			for ctx.Err() == nil {
				c, err := (&net.Dialer{LocalAddr: from}).DialContext(ctx, "tcp", args[1])
				if err == nil {
					opened.Add(1)
					attack(ctx, c, args[0])
					cut.Add(1)
				}
				pause(ctx, again)
			}
		})
	}
	_, _ = io.Copy(io.Discard, in)
	h := harm{opened.Load(), cut.Load()}
	cancel()
	all.Wait()
	return json.NewEncoder(out).Encode(h)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// attack harms over one connection until it is cut or ctx ends.
func attack(ctx context.Context, c net.Conn, kind string) {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	defer func() { _ = c.Close() }()
	if kind == slowHeaders {
		drip(ctx, c)
		return
	}
	// What waits to be sent would lie in the attacker's own machine; here its
	// copying would be the host's loss.
	if err := c.(*net.TCPConn).SetWriteBuffer(64 << 10); err != nil {
		return
	}
	head := http.MethodPost + " /message HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + benchKey + "\r\nContent-Length: 1073741824\r\n\r\n"
	if _, err := io.WriteString(c, head); err != nil {
		return
	}
	body := make([]byte, 64<<10)
	for {
		if _, err := c.Write(body); err != nil {
			return
		}
	}
}

// drip begins a request and adds a byte now and then.
func drip(ctx context.Context, c net.Conn) {
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "); err != nil {
		return
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = io.Copy(io.Discard, c)
	}()
	for {
		select {
		case <-over:
			return
		case <-time.After(again):
			_, _ = io.WriteString(c, "x") // fails once it is cut
		}
	}
}

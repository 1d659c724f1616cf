package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Ways of an attacker.
const (
	slowHeaders = "slowloris"
	tooLarge    = "oversize"
)

// again is how long an attacker's connection stays away after it was cut.
const again = time.Second

// attackStats are what an attacker did.
type attackStats struct{ Connections, Cut int64 }

// startAttacker starts a child that holds as many connections to a host as it can,
// from as many addresses of this machine. It stands for other machines.
func startAttacker(ctx context.Context, kind, url string, connections int) (*child, error) {
	c, err := startChild(ctx, nil, "attack", kind, strings.TrimPrefix(url, "http://"), strconv.Itoa(connections))
	if err != nil {
		return nil, err
	}
	if err := c.lowerPriority(); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

// attackJob attacks until its one request, which it answers with its statistics.
func attackJob(ctx context.Context, p pipe, args []string) error {
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var opened, cut atomic.Int64
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			// From many addresses, and not all at one moment.
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
	err = p.from.Decode(&struct{}{})
	stats := attackStats{opened.Load(), cut.Load()}
	cancel()
	all.Wait()
	if err != nil {
		return err
	}
	return p.sendReply(stats)
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

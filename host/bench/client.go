package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// order tells a client process what to post. Without a span it posts until the
// next order comes.
type order struct {
	URL, Body string
	// Keys are used by one client after the other.
	Keys    []string
	Clients int
	Span    time.Duration
}

// posted is what a client process answers to an order.
type posted struct {
	// Waits is how long each message took, in seconds.
	Waits []float64
	// Span is how long it posted, in seconds.
	Span  float64
	Error string
}

// rate is the messages a second.
func (p posted) rate() float64 { return float64(len(p.Waits)) / p.Span }

// customer is a process of its own that posts for one tenant. Two customers share
// neither a scheduler nor connections, as it is outside.
type customer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	to  *json.Encoder
	out *json.Decoder
}

// lowest is the priority of clients that stand for other machines.
const lowest = 19

// startCustomer starts a client process. One that is remote gives way to all
// others: what it computes would take nothing from the host's machine.
func startCustomer(ctx context.Context, remote bool) (*customer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &customer{cmd: exec.CommandContext(ctx, self, childCommand, "client")}
	c.cmd.Stderr = os.Stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.to, c.out = json.NewEncoder(c.in), json.NewDecoder(out)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	if remote {
		// The group, because a priority is a thread's.
		if err := syscall.Setpriority(syscall.PRIO_PGRP, c.cmd.Process.Pid, lowest); err != nil {
			c.stop()
			return nil, err
		}
	}
	return c, nil
}

// begin makes the customer post until end.
func (c *customer) begin(o order) error { return c.to.Encode(o) }

// end takes what came of an order; one without a span ends now.
func (c *customer) end(o order) (p posted, err error) {
	if o.Span == 0 {
		if err := c.to.Encode(order{}); err != nil {
			return p, err
		}
	}
	if err := c.out.Decode(&p); err != nil {
		return p, err
	}
	if p.Error != "" {
		return p, errors.New(p.Error)
	}
	return p, nil
}

func (c *customer) stop() { _ = c.in.Close(); _ = c.cmd.Wait() }

// clientHere is the customer's process. It ends with in.
func clientHere(in io.Reader, out io.Writer) error {
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		ended := make(chan struct{})
		if o.Span == 0 {
			go func() {
				defer close(ended)
				_ = orders.Decode(&order{})
			}()
		} else {
			time.AfterFunc(o.Span, func() { close(ended) })
		}
		if err := answers.Encode(o.post(ended)); err != nil {
			return err
		}
	}
}

// post posts from as many goroutines as there are clients, each one message after
// the other, until ended.
func (o order) post(ended <-chan struct{}) posted {
	cl := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: o.Clients}}
	defer cl.CloseIdleConnections()
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	waits := make([][]float64, o.Clients)
	began := time.Now()
	for i := range waits {
		wg.Go(func() {
			for !over(ended) && failed.Load() == nil {
				at := time.Now()
				if err := postAs(cl, o.URL+"/message", o.Keys[i%len(o.Keys)], o.Body); err != nil {
					failed.Store(&err)
					return
				}
				waits[i] = append(waits[i], time.Since(at).Seconds())
			}
		})
	}
	<-ended
	p := posted{Span: time.Since(began).Seconds()}
	wg.Wait()
	for _, w := range waits {
		p.Waits = append(p.Waits, w...)
	}
	if err := failed.Load(); err != nil {
		p.Error = (*err).Error()
	}
	return p
}

func over(ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	default:
		return false
	}
}

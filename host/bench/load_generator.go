package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// order is what a load generator has to post. Without a span it posts until the
// next order.
type order struct {
	URL, Body string
	// Gateway is the way of the messages, empty for POST /message.
	Gateway string
	// Keys are used by one client after the other.
	Keys    []string
	Clients int
	Span    time.Duration
}

// posted is the result of an order.
type posted struct {
	// Waits is how long each message took, in seconds.
	Waits []float64
	// Span is how long it posted, in seconds.
	Span float64
}

// rate is the messages a second.
func (p posted) rate() float64 { return float64(len(p.Waits)) / p.Span }

// startLoadGenerator starts a child that posts for one tenant. One that stands for
// another machine gives way to all other processes.
func startLoadGenerator(ctx context.Context, remote bool) (*child, error) {
	c, err := startChild(ctx, nil, "client")
	if err == nil && remote {
		if err = c.lowerPriority(); err != nil {
			c.stop()
		}
	}
	return c, err
}

// finish waits for the result of an order; one without a span ends now.
func (o order) finish(c *child) (p posted, err error) {
	if o.Span == 0 {
		if err := c.to.Encode(order{}); err != nil {
			return p, err
		}
	}
	err = c.receiveReply(&p)
	return p, err
}

// clientJob posts what the orders of its parent request.
func clientJob(_ context.Context, p pipe, _ []string) error {
	for {
		var o order
		if err := p.from.Decode(&o); err != nil {
			return err
		}
		ended := make(chan struct{})
		if o.Span == 0 {
			go func() {
				defer close(ended)
				_ = p.from.Decode(&order{})
			}()
		} else {
			time.AfterFunc(o.Span, func() { close(ended) })
		}
		got, err := o.post(ended)
		if err == nil {
			err = p.sendReply(got)
		}
		if err != nil {
			return err
		}
	}
}

// post posts from as many goroutines as there are clients, each one message after
// the other, until ended.
func (o order) post(ended <-chan struct{}) (posted, error) {
	cl := clientOf(o.Clients)
	defer cl.CloseIdleConnections()
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	var ids atomic.Int64
	ids.Store(time.Now().UnixNano()) // no message is a repeat of another order's
	waits := make([][]float64, o.Clients)
	began := time.Now()
	for i := range waits {
		wg.Go(func() {
			for !over(ended) && failed.Load() == nil {
				at := time.Now()
				if err := o.request(&ids).as(o.Keys[i%len(o.Keys)]).expect(cl, ""); err != nil {
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
		return p, *err
	}
	return p, nil
}

func over(ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	default:
		return false
	}
}

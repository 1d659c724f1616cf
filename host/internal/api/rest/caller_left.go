package rest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"skep/host/internal/swarm"
)

// leftTime bounds the request by which another host gets that a caller has left.
const leftTime = 2 * time.Second

// endWithCaller ends a request to another host when its caller has left. It sends that host word
// first, which takes the end of the connection for the end of this host. The result stops the watch.
func (c *call) endWithCaller(url string, cancel context.CancelCauseFunc) (stop func()) {
	ended := make(chan struct{})
	unwatch := context.AfterFunc(c.ctx(), func() {
		defer close(ended)
		if c.forwards && c.isLeft() {
			c.sendLeft(url)
		}
		cancel(context.Cause(c.ctx()))
	})
	return func() {
		if !unwatch() {
			<-ended
		}
	}
}

// isLeft reports whether the caller has ended the request: neither the end of his token nor this
// host.
func (c *call) isLeft() bool {
	stops := c.h.opt.Draining != nil && c.h.opt.Draining()
	return errors.Is(context.Cause(c.ctx()), context.Canceled) && !stops
}

// sendLeft sends to another host that the caller of the request has left.
func (c *call) sendLeft(url string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx()), leftTime)
	defer cancel()
	req, err := c.newHop(ctx, url, nil)
	if err == nil {
		req.Header.Set(leftHeader, "1")
		req.Header.Set(proofHeader, c.h.opt.OtherHosts.proof(req, c.h.opt.Now()))
		var answer *http.Response
		if answer, err = c.h.opt.OtherHosts.client.Do(req); err == nil {
			_ = answer.Body.Close()
		}
	}
	if err != nil {
		c.h.opt.Logger.Warn("another host did not get that a caller has left: his request may go on", "request_id", c.w.id, "url", url, "err", err)
	}
}

// trackHop keeps a request from another host until the result is called, so that the other host
// can end it. isLeft is set for one that ends another.
func (c *call) trackHop() (untrack func(), isLeft bool) {
	key := c.r.Header.Get(hopKeyHeader)
	if !c.isHop || !c.forwards || key == "" {
		return func() {}, false
	}
	if c.r.Header.Get(leftHeader) != "" {
		if running, ok := c.h.hops.Load(key); ok {
			running.(*call).cancel(swarm.ErrCallerLeft)
		}
		return nil, true
	}
	c.h.hops.Store(key, c)
	return func() { c.h.hops.CompareAndDelete(key, c) }, false
}

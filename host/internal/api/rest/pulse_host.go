package rest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"skep/host/internal/swarm"
)

// errHostLost ends a feed of a host that is not alive any more.
var errHostLost = errors.New("the host is lost")

// pulseHosts are the hosts whose feeds can be read here: all that are alive, by their names.
func (h *Handler) pulseHosts() []string {
	list := []string{h.opt.Pulse.Host()}
	if h.opt.Cluster != nil {
		hosts, _ := h.opt.Cluster.Hosts()
		for _, one := range hosts {
			list = append(list, one.Address)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// pulseHost reads whose feed is asked for, empty for the one of this host. A host that is asked by
// another one has been named.
func (c *call) pulseHost() (name string, err error) {
	name, err = c.param("host")
	if err != nil || name == "" || c.isHop || name == c.h.opt.Pulse.Host() {
		return "", err
	}
	if c.h.opt.OtherHosts == nil || !slices.Contains(c.h.pulseHosts(), name) {
		return "", newFault(http.StatusNotFound, "no host of the cluster has the address '%s'", truncate(name))
	}
	return name, nil
}

// followPulseOf sends the reader of a feed on to its host. The stream ends when that is lost: the
// reader comes again behind its last event.
func (c *call) followPulseOf(name string) error {
	ctx, cancel := context.WithCancelCause(c.ctx())
	defer cancel(nil)
	go c.watchHost(ctx, cancel, name)
	answer, err := c.sendTo(ctx, name)
	if err == nil {
		defer answer.Body.Close()
		err = c.takeAnswer(answer, &swarm.TaskKey{})
	}
	if err == nil || c.ctx().Err() != nil {
		return err
	}
	c.h.opt.Logger.Debug("a host has not sent its feed", "request_id", c.w.id, "url", name, "err", err)
	if c.w.status != 0 {
		return nil
	}
	return &fault{status: http.StatusServiceUnavailable, detail: "host " + name + " does not answer; come again", retryAfter: 1}
}

// watchHost ends a request to a host that is not alive any more: its connection may stay open.
func (c *call) watchHost(ctx context.Context, cancel context.CancelCauseFunc, name string) {
	look := time.NewTicker(c.h.opt.Ping)
	defer look.Stop()
	for {
		changed := c.h.opt.OtherHosts.owners.Changed()
		if !slices.Contains(c.h.pulseHosts(), name) {
			cancel(errHostLost)
			return
		}
		select {
		case <-changed:
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

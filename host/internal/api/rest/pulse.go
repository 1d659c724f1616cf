package rest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"skep/host/internal/api/auth"
	"skep/host/internal/swarm"
	"skep/host/internal/telemetry/pulse"
)

// followPulse is GET /skep/v1/pulse: what happens on this host, as it happens.
func (c *call) followPulse() error {
	filter, err := c.pulseFilter()
	if err != nil {
		return err
	}
	limit, err := c.intParam("limit", -1, 1, maxCursor)
	if err != nil {
		return err
	}
	kept, err := c.boolParam("kept")
	if err != nil {
		return err
	}
	other, err := c.pulseHost()
	if err != nil {
		return err
	}
	if other != "" {
		return c.followPulseOf(other)
	}
	if elsewhere := c.pulseElsewhere(filter); elsewhere != nil {
		return elsewhere
	}
	leave, err := c.h.openStreams.acquireStream(c.w.who)
	if err != nil {
		return err
	}
	defer leave()
	reader := c.pulseReader(filter, kept)
	defer reader.Close()
	defer c.endWhenMoved(filter)()
	s, err := c.openStream("")
	if c.r.Method == http.MethodHead {
		return nil
	}
	s.setRetry(reconnectAfter)
	for left := limit; err == nil && left != 0; {
		left, err = c.writePulse(s, reader, left)
	}
	if err != nil {
		c.closeFollow(err)
	}
	return nil
}

func (c *call) pulseReader(filter pulse.Filter, kept bool) *pulse.Reader {
	last := c.r.Header.Get("Last-Event-ID")
	if kept {
		return c.h.opt.Pulse.NewKeptReader(last, filter)
	}
	return c.h.opt.Pulse.NewReader(last, filter)
}

// endWhenMoved has the stream of one task end when another host takes the task: the reader comes
// again, and is sent there.
func (c *call) endWhenMoved(filter pulse.Filter) (stop func()) {
	if c.h.opt.OtherHosts == nil || filter.Task == "" || filter.Instance == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancelCause(c.ctx())
	c.r = c.r.WithContext(ctx)
	owners, key := c.h.opt.OtherHosts.owners, c.pulseKey(filter)
	go func() {
		for {
			changed := owners.Changed()
			if url, ok := owners.Owner(key); ok && url != "" {
				cancel(io.EOF)
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { cancel(nil) }
}

// pulseFilter reads which events the caller asks for, within what his role may see: an operator
// all, an admin the tenant's, a user the own tasks'.
func (c *call) pulseFilter() (filter pulse.Filter, err error) {
	if filter.Kinds, err = c.kindsParam(); err != nil {
		return filter, err
	}
	if filter.Task, err = c.param("task"); err != nil {
		return filter, err
	}
	within, err := c.visibleInstances()
	if err != nil {
		return filter, err
	}
	filter.Tenant = within.Tenant
	owner, err := c.param("owner")
	switch {
	case err != nil:
		return filter, err
	case c.w.who.Role == auth.User && owner != "" && owner != within.Instance:
		return filter, denied("users follow their own tasks", "asked for instance "+truncate(owner))
	case c.w.who.Role == auth.User:
		filter.Swarm, filter.Instance = within.Swarm, within.Instance
	case owner != "":
		filter.Swarm, filter.Instance = within.Swarm, owner
	}
	return filter, nil
}

// kindsParam reads the kinds of events that the caller asks for, none for all.
func (c *call) kindsParam() (kinds []pulse.Kind, err error) {
	text, err := c.param("kind")
	if err != nil || text == "" {
		return nil, err
	}
	for name := range strings.SplitSeq(text, ",") {
		kind := pulse.Kind(name)
		if !slices.Contains(pulse.Kinds(), kind) {
			return nil, badRequest("kind %q is none of %v", truncate(name), pulse.Kinds())
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// pulseElsewhere sends a reader of one task to the host that works on it, where that is known.
func (c *call) pulseElsewhere(filter pulse.Filter) error {
	if c.h.opt.OtherHosts == nil || filter.Task == "" || c.isHop || c.query.Get("host") != "" {
		return nil
	}
	key := c.pulseKey(filter)
	if url, ok := c.h.opt.OtherHosts.owners.Owner(key); ok && url != "" {
		return &swarm.Elsewhere{Task: key}
	}
	return nil
}

// pulseKey is the key of the one task of a filter.
func (c *call) pulseKey(filter pulse.Filter) swarm.TaskKey {
	key := c.taskKey(filter.Task)
	if filter.Instance != "" {
		key.Tenant, key.Instance = cmp.Or(filter.Tenant, key.Tenant), filter.Instance
	}
	return key
}

// pulseReset is a reset as JSON: what happened before is not known to the reader.
type pulseReset struct {
	Time   string   `json:"timestamp"`
	Host   string   `json:"host"`
	Reason string   `json:"reason"`
	Missed uint64   `json:"missed"`
	Hosts  []string `json:"hosts"`
}

// pulsePing is a ping as JSON. Its id is the reader's place.
type pulsePing struct {
	Time string `json:"timestamp"`
	// Host has the feed, Hosts are all that have one.
	Host  string   `json:"host"`
	Hosts []string `json:"hosts"`
}

// writePulse waits for events, and writes at most left of them, or a ping. A negative left means
// no limit. It returns what is left then.
func (c *call) writePulse(s *eventStream, reader *pulse.Reader, left int64) (int64, error) {
	quiet, cancel := context.WithTimeoutCause(c.ctx(), s.pingEvery, errIdle)
	reset, list, err := reader.Next(quiet)
	over := quiet.Err() != nil && c.ctx().Err() == nil
	cancel()
	if revoked := s.recheckCaller(over); revoked != nil {
		return left, revoked
	}
	host := c.h.opt.Pulse.Host()
	switch {
	case errors.Is(err, io.EOF) && reader.Ended():
		left = 0
		fallthrough
	case over && errors.Is(err, errIdle):
		s.addRaw(reader.ID(), "ping", encode(pulsePing{formatTime(s.now()), host, c.h.pulseHosts()}))
	case err != nil:
		return left, err
	case reset != nil:
		s.addRaw(reader.ID(), "reset", encode(pulseReset{formatTime(s.now()), host, reset.Reason, reset.Missed, c.h.pulseHosts()}))
		left--
	}
	if left >= 0 && int64(len(list)) > left {
		list = list[:left]
	}
	left -= int64(len(list))
	for _, e := range list {
		s.addRaw(c.h.opt.Pulse.ID(e.N), string(e.Kind), e.JSON())
		if s.buf.Len() > maxBuffer {
			if err := s.flush(); err != nil {
				return left, err
			}
		}
	}
	if err := s.flush(); err != nil || reset != nil || left == 0 {
		return left, err
	}
	return left, reader.Pause(c.ctx())
}

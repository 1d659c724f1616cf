package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"skep/host/client"
)

// topKeptTime bounds how long the kept events of a host are waited for.
const topKeptTime = 10 * time.Second

// topSilent is a host whose events are not counted now.
type topSilent struct {
	Host   string `json:"host"`
	Reason string `json:"reason"`
}

// topFeeds reads the feeds of all hosts that share the store, one stream for each. Its methods are
// called by one goroutine, which receives from events and ended.
type topFeeds struct {
	client *client.Client
	tenant string
	known  map[string]*topFeed
	events chan topEvent
	ended  chan topEnd
}

// topFeed is the feed of a host.
type topFeed struct {
	// last is the id of the last event.
	last string
	// isOpen is set while a goroutine reads it.
	isOpen bool
	// failure is why its events are not counted now, nil if they are.
	failure error
}

// topEvent is an event of a host.
type topEvent struct {
	host string
	client.PulseEvent
}

// topEnd is the end of a host's feed.
type topEnd struct {
	host string
	err  error
}

func newTopFeeds(c *client.Client, tenant string) *topFeeds {
	return &topFeeds{client: c, tenant: tenant, known: map[string]*topFeed{}, events: make(chan topEvent), ended: make(chan topEnd)}
}

// Reasons of hosts whose events are not counted.
var (
	errTopGone  = errors.New("it is not alive any more")
	errTopEnded = errors.New("it has ended its feed")
	errTopSlow  = errors.New("it has not sent its events within " + topKeptTime.String())
)

func (f *topFeeds) feed(host string) *topFeed {
	if f.known[host] == nil {
		f.known[host] = &topFeed{}
	}
	return f.known[host]
}

// readKept adds what all hosts have kept. It fails if none answers.
func (f *topFeeds) readKept(ctx context.Context, add func(client.PulseEvent)) error {
	hosts, err := f.client.PulseHosts(ctx)
	if err != nil {
		return err
	}
	kept, errs := make([][]client.PulseEvent, len(hosts)), make([]error, len(hosts))
	var all sync.WaitGroup
	for i, host := range hosts {
		all.Go(func() {
			errs[i] = f.readKeptOf(ctx, host, func(e client.PulseEvent) bool {
				kept[i] = append(kept[i], e)
				return true
			})
		})
	}
	all.Wait()
	for i, host := range hosts {
		for _, e := range kept[i] {
			f.note(host, e)
			add(e)
		}
		f.feed(host).failure = errs[i]
	}
	if !slices.Contains(errs, nil) {
		return errors.Join(errs...)
	}
	return nil
}

// readKeptOf hands on what a host has kept, the last with the place behind it, while add wants more.
func (f *topFeeds) readKeptOf(ctx context.Context, host string, add func(client.PulseEvent) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, topKeptTime, errTopSlow)
	defer cancel()
	for e, err := range f.client.Pulse(ctx, client.PulseQuery{Tenant: f.tenant, Host: host, Kept: true}) {
		if err != nil {
			return err
		}
		if !add(e) {
			return nil
		}
	}
	return nil
}

// note notes an event of a host, which answers.
func (f *topFeeds) note(host string, e client.PulseEvent) {
	feed := f.feed(host)
	feed.failure = nil
	if e.ID != "" {
		feed.last = e.ID
	}
}

// noteEnd notes that a host's feed has ended.
func (f *topFeeds) noteEnd(end topEnd) {
	feed := f.feed(end.host)
	feed.isOpen, feed.failure = false, end.err
}

// follow reads which hosts are alive, and begins to follow those that it does not.
func (f *topFeeds) follow(ctx context.Context) error {
	hosts, err := f.client.PulseHosts(ctx)
	if err != nil {
		return err
	}
	for _, host := range hosts {
		feed := f.feed(host)
		if feed.isOpen { // an event or a ping shows that the host answers
			continue
		}
		feed.isOpen = true
		go f.send(ctx, host, feed.last)
	}
	for host, feed := range f.known {
		if !slices.Contains(hosts, host) {
			feed.failure = errTopGone
		}
	}
	return nil
}

// send hands on the events of a host behind the id last, without one also what it has kept.
func (f *topFeeds) send(ctx context.Context, host, last string) {
	send := func(e client.PulseEvent) bool {
		select {
		case f.events <- topEvent{host, e}:
			last = e.ID
			return true
		case <-ctx.Done():
			return false
		}
	}
	end := topEnd{host: host}
	if last == "" {
		end.err = f.readKeptOf(ctx, host, send)
	}
	if end.err == nil {
		end.err = errTopEnded
		for e, err := range f.client.Pulse(ctx, client.PulseQuery{Tenant: f.tenant, Host: host, After: last, Pings: true}) {
			if err != nil {
				end.err = err
			} else if !send(e) {
				break
			}
		}
	}
	select {
	case f.ended <- end:
	case <-ctx.Done():
	}
}

// hosts lists whose events are counted, and whose are not.
func (f *topFeeds) hosts() (counted []string, silent []topSilent) {
	counted, silent = []string{}, []topSilent{}
	for _, host := range slices.Sorted(maps.Keys(f.known)) {
		if err := f.known[host].failure; err != nil {
			silent = append(silent, topSilent{host, err.Error()})
		} else {
			counted = append(counted, host)
		}
	}
	return counted, silent
}

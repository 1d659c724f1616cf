package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// liveFeeds is how many read the feed of a host.
const liveFeeds = 20

const feedSwarm = benchSwarm + "[server]\nmax_streams_per_principal = 0\n"

// feeds compares what a trivial task costs a host whose live feed is read with what it costs one whose
// feed nobody reads.
func feeds(b *bench) {
	hosts := []*comparedHost{
		{name: "no feed"},
		{name: fmt.Sprintf("%d live feeds", liveFeeds), least: 0.95},
		{name: "a live feed that is never read", least: 0.99},
	}
	for _, h := range hosts {
		h.on = storedHost{on: must(startHost(b.ctx, feedSwarm))}
		defer h.on.on.stop()
	}
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	var events atomic.Int64
	for range liveFeeds {
		body := must(openFeed(ctx, hosts[1].on.on.url, http.DefaultTransport))
		defer body.Close()
		go func() { _, _ = io.Copy(countEvents{&events}, body) }()
	}
	defer must(openFeed(ctx, hosts[2].on.on.url, &http.Transport{DialContext: dialNarrow})).Close()
	b.spendInTurns(hosts)
	b.reportTasks("with ", hosts)
	b.report.fact("  events that each of the live feeds was sent", float64(events.Load())/liveFeeds, count)
}

// openFeed opens the live feed of a host.
func openFeed(ctx context.Context, url string, by http.RoundTripper) (io.ReadCloser, error) {
	rsp, err := getFrom(url+"/skep/v1/pulse").as(benchKey).open(ctx, &http.Client{Transport: by})
	if err != nil {
		return nil, err
	}
	return rsp.Body, nil
}

// dialNarrow connects with a socket that holds little of what is not read.
func dialNarrow(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return conn, conn.(*net.TCPConn).SetReadBuffer(4 << 10)
}

// countEvents counts the events of a stream.
type countEvents struct{ n *atomic.Int64 }

func (c countEvents) Write(text []byte) (int, error) {
	c.n.Add(int64(bytes.Count(text, []byte("\nevent: "))))
	return len(text), nil
}

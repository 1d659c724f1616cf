package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	idleStreams   = 10_000
	activeStreams = 200
	// quietTasks are what the idle streams follow.
	quietTasks = 10
	// paced is how often each active stream gets a new task.
	paced = time.Second
)

const streamsSwarm = benchSwarm + `[server]
max_connections = 0
max_streams = 0
max_streams_per_principal = 0
`

// streams measures what an event stream costs on which nothing happens, and how
// late events come on others beside many of these.
func streams(b *bench) error {
	host, err := hostApart(b.ctx, streamsSwarm)
	if err != nil {
		return err
	}
	defer host.stop()
	b.report.fact(fmt.Sprintf("idle streams, %d tasks", quietTasks), idleStreams, count)
	alone, err := b.active(host.url)
	if err != nil {
		return err
	}
	idle, err := b.crowd(host)
	defer idle.close()
	if err != nil {
		return err
	}
	beside, err := b.active(host.url)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("from event to reader, %d active streams beside them", activeStreams)
	b.report.compare(name+", p50", median(beside), seconds, "without idle ones", median(alone), none())
	b.report.compare(name+", p99", percentile(beside, 99), seconds, "without idle ones", percentile(alone, 99), none())
	b.report.fact("  events", float64(len(beside)), count)
	return nil
}

// opened are connections on which a stream has begun.
type opened struct {
	mu  sync.Mutex
	all []net.Conn
}

func (h *opened) add(c net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, c)
}

func (h *opened) close() {
	for _, c := range h.all {
		_ = c.Close()
	}
}

// crowd opens the idle streams and reports what they cost the host, beside what
// they cost a server that has nothing else.
func (b *bench) crowd(host *apart) (idle *opened, err error) {
	idle = &opened{}
	cl := &http.Client{Transport: &http.Transport{}}
	defer cl.CloseIdleConnections()
	var asks []*http.Request
	for i := range quietTasks {
		ask, _, err := (&hostAudience{url: host.url, n: i}).begin(cl)
		if err != nil {
			return idle, err
		}
		r, err := ask()
		if err != nil {
			return idle, err
		}
		asks = append(asks, r)
	}
	bare, err := b.bareCrowd()
	if err != nil {
		return idle, err
	}
	each, err := idle.open(host, asks)
	if err != nil {
		return idle, err
	}
	for i, what := range []string{"heap and stacks", "resident memory"} {
		b.report.compare("an idle stream, "+what+" of the host", each[i], bytesOf, "a bare net/http server", bare[i], none())
	}
	return idle, nil
}

func (b *bench) bareCrowd() (each [2]float64, err error) {
	bare, err := startApart(b.ctx, "bare")
	if err != nil {
		return each, err
	}
	defer bare.stop()
	ask, err := http.NewRequest(http.MethodGet, bare.url+"/events", nil)
	if err != nil {
		return each, err
	}
	idle := &opened{}
	defer idle.close()
	return idle.open(bare, []*http.Request{ask})
}

// open opens the idle streams and returns what each costs its server: on heap and
// stacks, and in resident memory.
func (o *opened) open(on *apart, asks []*http.Request) (each [2]float64, err error) {
	before, err := on.holds()
	if err != nil {
		return each, err
	}
	if err := spread(floodClients, idleStreams, func(i int) error { return o.follow(asks[i%len(asks)]) }); err != nil {
		return each, err
	}
	after, err := on.holds()
	for i := range each {
		each[i] = (after[i] - before[i]) / idleStreams
	}
	return each, err
}

// holds is what the child has in use, and in memory, in bytes.
func (a *apart) holds() (n [2]float64, err error) {
	if n[0], err = a.memory(); err != nil {
		return n, err
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.cmd.Process.Pid))
	if err != nil {
		return n, err
	}
	n[1], err = statusField(text, "VmRSS")
	return n, err
}

// follow begins a stream and leaves it at that.
func (o *opened) follow(ask *http.Request) error {
	c, err := net.Dial("tcp", ask.URL.Host)
	if err != nil {
		return err
	}
	o.add(c)
	if err := ask.Write(c); err != nil {
		return err
	}
	rsp, err := http.ReadResponse(bufio.NewReaderSize(c, 1<<10), ask)
	if err != nil {
		return err
	}
	if rsp.StatusCode != http.StatusOK {
		return errors.New(rsp.Status)
	}
	return nil
}

// active posts with streams, each a task now and then, and returns how late each
// event came.
func (b *bench) active(url string) (late []float64, err error) {
	cl := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: activeStreams}}
	defer cl.CloseIdleConnections()
	var all sync.WaitGroup
	var mu sync.Mutex
	var first error
	until := time.Now().Add(time.Duration(b.rounds) * b.span)
	for i := range activeStreams {
		all.Go(func() {
			time.Sleep(paced * time.Duration(i) / activeStreams)
			for time.Now().Before(until) {
				next := time.Now().Add(paced)
				waits, err := streamed(cl, url)
				mu.Lock()
				late = append(late, waits...)
				first = errors.Join(first, err)
				mu.Unlock()
				if err != nil {
					return
				}
				time.Sleep(time.Until(next))
			}
		})
	}
	all.Wait()
	return late, first
}

// streamed posts one message and returns how late the events of its stream came,
// by their own time.
func streamed(cl *http.Client, url string) (late []float64, err error) {
	req, err := keyed(http.MethodPost, url+"/message", `{"body":"hello","stream":true}`)
	if err != nil {
		return nil, err
	}
	rsp, err := cl.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rsp.Body.Close() }()
	if rsp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(rsp.Body)
		return nil, fmt.Errorf("%s: %s", rsp.Status, bytes.TrimSpace(text))
	}
	for lines := bufio.NewScanner(rsp.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var event struct{ Timestamp time.Time }
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return nil, err
		}
		late = append(late, time.Since(event.Timestamp).Seconds())
	}
	return late, nil
}

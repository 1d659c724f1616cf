package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
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
func streams(b *bench) {
	host := must(startHost(b.ctx, streamsSwarm))
	defer host.stop()
	b.report.fact(fmt.Sprintf("idle streams, %d tasks", quietTasks), idleStreams, count)
	hello := func(cl *http.Client) ([]float64, error) { return streamed(cl, host.url) }
	alone := must(b.active(hello))
	idle := &opened{}
	defer idle.close()
	b.openIdle(host, idle)
	beside := must(b.active(hello))
	name := fmt.Sprintf("from event to reader, %d active streams beside them", activeStreams)
	b.report.compareTails(name, beside, "without idle ones", alone, none())
	b.report.fact("  events", float64(len(beside)), count)
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

// openIdle opens the idle streams and reports what they cost the host, beside what
// they cost a server that has nothing else.
func (b *bench) openIdle(host *child, idle *opened) {
	cl := clientOf(0)
	defer cl.CloseIdleConnections()
	var asks []httpRequest
	for i := range quietTasks {
		ask, _ := must2((&hostReaders{url: host.url, n: i}).begin(cl))
		asks = append(asks, ask)
	}
	bare := b.bareIdle()
	each := must(idle.open(host, asks))
	for i, what := range []string{"heap and stacks", "resident memory"} {
		b.report.compare("an idle stream, "+what+" of the host", each[i], bytesOf, "a bare net/http server", bare[i], none())
	}
}

func (b *bench) bareIdle() (each [2]float64) {
	bare := must(startServer(b.ctx, nil, "bare"))
	defer bare.stop()
	idle := &opened{}
	defer idle.close()
	return must(idle.open(bare, []httpRequest{getFrom(bare.url + "/events")}))
}

// open opens the idle streams and returns what each costs its server: on heap and
// stacks, and in resident memory.
func (o *opened) open(on *child, asks []httpRequest) (each [2]float64, err error) {
	before, err := on.memory()
	if err != nil {
		return each, err
	}
	if err := spread(floodClients, idleStreams, func(i int) error { return o.follow(asks[i%len(asks)]) }); err != nil {
		return each, err
	}
	after, err := on.memory()
	for i := range each {
		each[i] = (after[i] - before[i]) / idleStreams
	}
	return each, err
}

// follow begins a stream and leaves it at that.
func (o *opened) follow(request httpRequest) error {
	ask, err := request.build(context.Background())
	if err != nil {
		return err
	}
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

// active posts with streams, each a task now and then, and returns how late what each
// post waits for came.
func (b *bench) active(post func(*http.Client) (late []float64, err error)) (late []float64, err error) {
	cl := clientOf(activeStreams)
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
				waits, err := post(cl)
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
	rsp, err := message(url, `{"body":"hello","stream":true}`).open(context.Background(), cl)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rsp.Body.Close() }()
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

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/julienschmidt/httprouter"

	"skep/host"
)

const benchKey = "a-key-for-the-benchmark"

const benchSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "bundled:script"
enable_entrypoint = true
can_complete_tasks = true
[[auth.keys]]
id = "bench"
role = "user"
key = "` + benchKey + `"
[limits]
queue = 0
`

// posts compares POST /message, one trivial durable turn each, with the same
// recorded steps applied to an empty store without a host, and with an HTTP
// server that only echoes.
func posts(b *bench) error {
	computing, back := host.Room()
	defer back()
	defer host.Slack()()
	url, stop, err := startHost(b.ctx, computing)
	if err != nil {
		return err
	}
	defer stop()
	echo, stopEcho, err := startEcho()
	if err != nil {
		return err
	}
	defer stopEcho()
	tape, err := record(b.ctx)
	if err != nil {
		return err
	}
	for _, clients := range []int{1, 16} {
		rates, err := b.rates(
			subject{"POST /message", poster(url+"/message", clients)},
			subject{"re-applied steps", func(span time.Duration) (int, time.Duration, error) { return tape.replay(b.ctx, clients, span) }},
			subject{"echo", poster(echo+"/message", clients)},
		)
		if err != nil {
			return err
		}
		target := none()
		if clients == 16 {
			target = atLeast(0.60)
		}
		b.report.compare(fmt.Sprintf("POST /message, %d clients", clients), rates[0], rate, "its steps re-applied without a host", rates[1], target)
		b.report.compare(fmt.Sprintf("POST /message, %d clients", clients), rates[0], rate, "an HTTP echo without anything behind it", rates[2], none())
	}
	return nil
}

// startHost starts one as the program does, in this process.
func startHost(ctx context.Context, computing int) (url string, stop func(), err error) {
	return startSwarm(ctx, benchSwarm, computing)
}

// startSwarm is startHost for a swarm of its own.
func startSwarm(ctx context.Context, swarm string, computing int) (url string, stop func(), err error) {
	dir, remove, err := scratch()
	if err != nil {
		return "", nil, err
	}
	url, end, err := serveFor(ctx, swarm, dir, filepath.Join(dir, "data"), computing)
	if err != nil {
		remove()
		return "", nil, err
	}
	return url, func() { end(); remove() }, nil
}

// startEcho serves what an HTTP answer costs when nothing is done for it.
func startEcho() (url string, stop func(), err error) {
	router := httprouter.New()
	router.POST("/message", echo)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	srv := &http.Server{Handler: router}
	go func() { _ = srv.Serve(l) }()
	return "http://" + l.Addr().String(), func() { _ = srv.Close() }, nil
}

func echo(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	var in struct {
		Body string `json:"body"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"response": in.Body, "events": nil})
}

// poster posts from a number of clients at once.
func poster(url string, clients int) func(time.Duration) (int, time.Duration, error) {
	cl := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	return func(span time.Duration) (int, time.Duration, error) {
		return parallel(clients, span, func(int) error { return post(cl, url) })
	}
}

func post(cl *http.Client, url string) error { return postAs(cl, url, benchKey, trivialBody) }

// postAs posts a body with somebody's key and expects an answer.
func postAs(cl *http.Client, url, key, body string) error {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	rsp, err := cl.Do(req)
	if err != nil {
		return err
	}
	defer rsp.Body.Close()
	raw, err := io.ReadAll(rsp.Body)
	if err != nil {
		return err
	}
	if rsp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", rsp.Status, raw)
	}
	return nil
}

// parallel calls f from n goroutines until the span is over.
func parallel(n int, span time.Duration, f func(worker int) error) (int, time.Duration, error) {
	var wg sync.WaitGroup
	var ops atomic.Int64
	var failed atomic.Value
	begin := time.Now()
	for w := range n {
		wg.Go(func() {
			for time.Since(begin) < span && failed.Load() == nil {
				if err := f(w); err != nil {
					failed.Store(err)
					return
				}
				ops.Add(1)
			}
		})
	}
	wg.Wait()
	took := time.Since(begin)
	if err, ok := failed.Load().(error); ok {
		return 0, 0, err
	}
	return int(ops.Load()), took, nil
}

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/julienschmidt/httprouter"
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
func posts(b *bench) {
	computing, restore := hostProcess()
	defer restore()
	url, stop := must2(runTemporaryHost(b.ctx, benchSwarm, computing))
	defer stop()
	echo, stopEcho := must2(listen(echoServer()))
	defer stopEcho()
	recording := must(record(b.ctx))
	for _, clients := range []int{1, 16} {
		rates := must(b.rates(
			posting(url, clients),
			subject{"re-applied steps", func(span time.Duration) (int, time.Duration, error) { return recording.replay(b.ctx, clients, span) }},
			posting(echo, clients),
		))
		target := atLeast(0.55)
		if clients == 16 {
			target = atLeast(0.70)
		}
		b.report.compare(fmt.Sprintf("POST /message, %d clients", clients), rates[0], rate, "its steps re-applied without a host", rates[1], target)
		b.report.compare(fmt.Sprintf("POST /message, %d clients", clients), rates[0], rate, "an HTTP echo without anything behind it", rates[2], none())
	}
}

// echoServer serves what an HTTP response costs when nothing is done for it.
func echoServer() http.Handler {
	router := httprouter.New()
	router.POST("/message", echo)
	return router
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

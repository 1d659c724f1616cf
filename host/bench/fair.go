package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// floodClients is how many clients of one tenant post as fast as they can.
const floodClients = 16

const (
	trivialBody = `{"body":"hello","subject":"q"}`
	burnBody    = `{"body":"[[\"burn\",{\"ms\":5}],[\"task_complete\",{\"finish_message\":\"done\"}]]","subject":"q"}`
)

// fairness measures how long a tenant that posts one message at a time waits,
// alone and beside one that floods the host. The clients have this process, the
// host one of its own; both share the cores. The flood of an echo, which this
// process serves, shows what a busy machine does to the same messages.
func fairness(b *bench) error {
	for _, weight := range []int{1, 4} {
		if err := b.fairWith(weight); err != nil {
			return err
		}
	}
	return nil
}

func fairSwarm(weight int) string {
	return benchSwarm + fmt.Sprintf(`[tenants.flood]
[tenants.calm]
weight = %d
[[auth.keys]]
id = "flood"
role = "user"
tenant = "flood"
key = "flood-%s"
[[auth.keys]]
id = "calm"
role = "user"
tenant = "calm"
key = "calm-%s"
`, weight, benchKey, benchKey)
}

func (b *bench) fairWith(weight int) error {
	url, stop, err := serveApart(b.ctx, fairSwarm(weight))
	if err != nil {
		return err
	}
	defer stop()
	echo, stopEcho, err := startEcho()
	if err != nil {
		return err
	}
	defer stopEcho()
	floods := []flood{
		{"alone", "", ""},
		{"beside a flood of trivial turns", url, trivialBody},
		{"beside a flood of turns of 5 ms", url, burnBody},
	}
	if weight == 1 {
		floods = append(floods, flood{"beside a flood of an echo, no host", echo, trivialBody})
	}
	waits := make([][]float64, len(floods))
	rates := make([][]float64, len(floods))
	for range b.rounds {
		for i, f := range floods {
			w, rate, err := f.beside(b.span, url)
			if err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
			waits[i], rates[i] = append(waits[i], w...), append(rates[i], rate)
		}
	}
	b.reportFair(weight, floods, waits, rates)
	return nil
}

func (b *bench) reportFair(weight int, floods []flood, waits, rates [][]float64) {
	for i, f := range floods[1:] {
		target := atMost(2)
		if i == 2 {
			target = none()
		}
		name := fmt.Sprintf("weight %d to 1, %s", weight, strings.TrimPrefix(f.name, "beside "))
		b.report.compare(name+", p50", median(waits[i+1]), seconds, "alone", median(waits[0]), none())
		b.report.compare(name+", p99", percentile(waits[i+1], 99), seconds, "alone", percentile(waits[0], 99), target)
		b.report.fact(fmt.Sprintf("  messages of the flood (%d of the other)", len(waits[i+1])), median(rates[i+1]), rate)
	}
}

// flood is what goes on beside a tenant's messages.
type flood struct{ name, url, body string }

// beside measures how long each message of the calm tenant takes, and how many
// messages a second the flood gets through.
func (f flood) beside(span time.Duration, url string) (waits []float64, rate float64, err error) {
	var wg sync.WaitGroup
	var off atomic.Bool
	var n atomic.Int64
	errs := make(chan error, floodClients)
	begin := time.Now()
	if f.url != "" {
		cl := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: floodClients}}
		defer cl.CloseIdleConnections()
		for range floodClients {
			wg.Go(func() {
				for !off.Load() {
					if err := postAs(cl, f.url+"/message", "flood-"+benchKey, f.body); err != nil {
						errs <- err
						return
					}
					n.Add(1)
				}
			})
		}
	}
	time.Sleep(span / 8) // until the flood is there
	waits, err = latencies(url, "calm-"+benchKey, span)
	off.Store(true)
	rate = float64(n.Load()) / time.Since(begin).Seconds()
	wg.Wait()
	select {
	case err = <-errs:
	default:
	}
	return waits, rate, err
}

// latencies posts one message after the other and returns how long each took.
func latencies(url, key string, span time.Duration) (waits []float64, err error) {
	cl := &http.Client{Transport: &http.Transport{}}
	defer cl.CloseIdleConnections()
	for begin := time.Now(); time.Since(begin) < span; {
		at := time.Now()
		if err := postAs(cl, url+"/message", key, trivialBody); err != nil {
			return nil, err
		}
		waits = append(waits, time.Since(at).Seconds())
	}
	return waits, nil
}

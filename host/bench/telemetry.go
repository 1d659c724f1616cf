package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"
)

// comparedHost is a host with a collector or with readers, and what its rate is set against: the share
// of the rate of one that has none.
type comparedHost struct {
	name, table string
	least       float64
	on          storedHost
	each, rates []float64
}

// tracing compares what a trivial task costs a host that sends traces with what it costs one that
// does not. Metrics cannot be turned off: both have them.
func tracing(b *bench) {
	taking, stopTaking := must2(listen(collectorOfSpans(false)))
	defer stopTaking()
	slow, stopSlow := must2(listen(collectorOfSpans(true)))
	defer stopSlow()
	gone := httptest.NewServer(nil)
	gone.Close()
	hosts := []*comparedHost{
		{name: "no traces"},
		{name: "1 % of the tasks", table: collectorTable(taking, 0.01), least: 0.95},
		{name: "all tasks", table: collectorTable(taking, 1), least: 0.85},
		{name: "all tasks, a dead collector", table: collectorTable(gone.URL, 1), least: 0.95},
		{name: "all tasks, a collector that does not answer", table: collectorTable(slow, 1), least: 0.95},
	}
	for _, h := range hosts {
		h.on = storedHost{on: must(startHost(b.ctx, benchSwarm+h.table))}
		defer h.on.on.stop()
	}
	b.spendInTurns(hosts)
	b.reportTasks("traces of ", hosts)
}

// spendInTurns has all hosts do trivial tasks, one after the other and in both orders.
func (b *bench) spendInTurns(hosts []*comparedHost) {
	for round := range b.rounds + 1 {
		for i := range hosts {
			h := hosts[i]
			if round%2 == 1 {
				h = hosts[len(hosts)-1-i]
			}
			c, r := must2(b.spend(h.on, 16))
			if round > 0 { // the first one warms up
				h.each, h.rates = append(h.each, c), append(h.rates, r)
			}
		}
	}
}

// reportTasks compares all hosts with the first of them.
func (b *bench) reportTasks(by string, hosts []*comparedHost) {
	plain := hosts[0]
	before := must(plain.on.on.memory())
	for _, h := range hosts[1:] {
		b.report.compare("rate of a trivial task, 16 clients, "+by+h.name, median(h.rates), rate, plain.name, median(plain.rates), atLeast(h.least))
		b.report.compare("computing of it", median(h.each), seconds, plain.name, median(plain.each), none())
		b.report.compare("resident memory afterwards", must(h.on.on.memory())[1], bytesOf, plain.name, before[1], none())
	}
}

func collectorTable(url string, sample float64) string {
	return fmt.Sprintf("[telemetry]\nendpoint = %q\nsample = %v\n", url, sample)
}

// collectorOfSpans takes what it is sent, or never answers.
func collectorOfSpans(silent bool) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if silent {
			<-r.Context().Done()
		}
	})
}

// scraping compares what a trivial task costs a host whose metrics are read each second, ten times as
// often as usual, with what it costs one whose metrics are never read. Both count: that cannot be turned off.
func scraping(b *bench) {
	taken, stop := must2(listen(http.NotFoundHandler()))
	stop()
	address := strings.TrimPrefix(taken, "http://")
	hosts := []*comparedHost{{name: "metrics that are never read"}, {name: "metrics that are read each second", least: 0.97, table: fmt.Sprintf("[server]\nadmin_listen = %q\n", address)}}
	for _, h := range hosts {
		h.on = storedHost{on: must(startHost(b.ctx, benchSwarm+h.table))}
		defer h.on.on.stop()
	}
	ctx, cancel := context.WithCancel(b.ctx)
	ended := make(chan int)
	go func() { ended <- scrape(ctx, "http://"+address+"/metrics") }()
	b.spendInTurns(hosts)
	cancel()
	read := <-ended
	if read == 0 {
		check(errors.New("no metrics were read"))
	}
	b.reportTasks("", hosts)
	b.report.fact("  times that they were read", float64(read), count)
}

// scrape reads metrics each second until ctx ends, and returns how often it has.
func scrape(ctx context.Context, url string) (read int) {
	each := time.NewTicker(time.Second)
	defer each.Stop()
	for {
		if err := getFrom(url).expect(http.DefaultClient, "skep_"); err == nil {
			read++
		}
		select {
		case <-each.C:
		case <-ctx.Done():
			return read
		}
	}
}

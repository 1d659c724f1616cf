package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// manyPeers is as many as a host takes.
const manyPeers = 1000

// askedEvery is how often a host asks each peer for its health, by default.
const askedEvery = 30 * time.Second

// peers measures what it costs a host to know other swarms: memory, the calls by
// which it looks after them, and a post.
func peers(b *bench) {
	receiver := newReceiver()
	defer receiver.close()
	few := must(startHost(b.ctx, withPeers(receiver.url, 1)))
	defer few.stop()
	many := must(startHost(b.ctx, withPeers(receiver.url, manyPeers)))
	defer many.stop()
	both := []*child{few, many}
	spent := must(idle(askedEvery, both...))
	var held [2][2]float64
	for i, a := range both {
		held[i] = must(a.memory())
	}
	for i, what := range []string{"heap and stacks", "resident memory"} {
		b.report.compare(fmt.Sprintf("a host that knows %d peers, %s", manyPeers, what), held[1][i], bytesOf, "one peer", held[0][i], none())
	}
	b.report.compare(fmt.Sprintf("computing a second, %d peers asked every %v", manyPeers, askedEvery), spent[1], seconds, "one peer", spent[0], none())
	for _, clients := range []int{1, 16} {
		rates := must(b.rates(posting(many.url, clients), posting(few.url, clients)))
		b.report.compare(fmt.Sprintf("POST /message beside %d peers, %d clients", manyPeers, clients), rates[0], rate, "beside one peer", rates[1], none())
	}
}

// withPeers is a host that knows n swarms, all at one address.
func withPeers(url string, n int) string {
	var b strings.Builder
	b.WriteString(benchSwarm)
	for i := range n {
		fmt.Fprintf(&b, "[peers.p%d]\nbase_url = %q\nauth_token = \"a-key-of-the-benchmark\"\n", i, url)
	}
	return b.String()
}

// idle is the computing time a second of hosts without callers.
func idle(span time.Duration, hosts ...*child) (each []float64, err error) {
	for _, a := range hosts {
		before, err := computed(a.pid())
		if err != nil {
			return nil, err
		}
		each = append(each, -before)
	}
	time.Sleep(span)
	for i, a := range hosts {
		after, err := computed(a.pid())
		if err != nil {
			return nil, err
		}
		each[i] = (each[i] + after) / span.Seconds()
	}
	return each, nil
}

// ticks is how the system counts computing time.
const ticks = 100

// computed is the computing time of a process so far, in seconds.
func computed(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("computing time is measured on Linux only: %w", err)
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name may have spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("the system tells no computing time: %q", text)
	}
	user, err := strconv.ParseFloat(fields[11], 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseFloat(fields[12], 64)
	return (user + system) / ticks, err
}

package main

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// parked is how many tenants are parked: more than a host remembers.
func (b *bench) parked() int {
	if b.full {
		return 10_000
	}
	return 2_000
}

// parkedSwarm gives every tenant a key of its own, in the shortest form: the
// longer one of so many is more than a file may have.
func parkedSwarm(n int) string {
	var s strings.Builder
	s.WriteString(`schema = 1
[swarm]
name = "hive"
entrypoint = "boss"
[agents.boss]
source = "bundled:script"
enable_entrypoint = true
can_complete_tasks = true
[limits]
queue = 0
[auth]
keys = [
`)
	for i := range n {
		fmt.Fprintf(&s, "{id=\"b\",role=\"user\",tenant=%q,key=%q},\n", tenantName(i), keyOf(i))
	}
	s.WriteString("]\n[tenants]\n")
	for i := range n {
		fmt.Fprintf(&s, "%s={}\n", tenantName(i))
	}
	return s.String()
}

func keyOf(tenant int) string { return fmt.Sprintf("key-of-%010d", tenant) }

// parkedTenants measures what tenants cost of which each has had a task and
// nothing goes on any more, on a whole host with HTTP and sandboxes.
func parkedTenants(b *bench) {
	alone := configured(b, 1)
	dir, remove := must2(scratch())
	defer remove()
	none := live()
	url, stop := must2(runHost(b.ctx, parkedSwarm(b.parked()), filepath.Join(dir, "data"), 0))
	b.report.fact("a configured tenant that has had no message, heap", (live()-none-alone)/float64(b.parked()-1), bytesOf)
	err := caught(func() { b.parkedMemory(url) })
	stop()
	check(err)
	begin := time.Now()
	url, stop = must2(runHost(b.ctx, parkedSwarm(b.parked()), filepath.Join(dir, "data"), 0))
	defer stop()
	b.report.fact(fmt.Sprintf("start of a host with %d tenants", b.parked()), time.Since(begin).Seconds(), seconds)
	b.parkedLatency(url)
}

// configured is the heap of a host with so many tenants.
func configured(b *bench, n int) (heap float64) {
	none := live()
	_, stop := must2(runTemporaryHost(b.ctx, parkedSwarm(n), 0))
	defer stop()
	return live() - none
}

// memory is what this process holds: as the system sees it, and as the collector
// does.
type memory struct{ rss, heap float64 }

// live is what the collector has found to be in use.
func live() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// warmups is how many messages go to one tenant before, and again after, memory is
// looked at: the first fill caches, the others show what messages leave without
// tenants.
const warmups = 1500

func (b *bench) parkedMemory(url string) {
	cl := clientOf(floodClients)
	defer cl.CloseIdleConnections()
	to := func(tenant int) error { return message(url, trivialBody).as(keyOf(tenant)).expect(cl, "") }
	same := func() { check(byClients(warmups, func(int) error { return to(0) })) }
	var at [4]memory
	for i, fill := range []func(){same, same, func() { b.parkAll(to) }} {
		fill()
		at[i+1] = memory{must(resident()), live()}
	}
	n := float64(b.parked() - 1)
	b.report.compare("a parked tenant, resident memory", (at[3].rss-at[2].rss)/n, bytesOf,
		"what another message to one tenant leaves", (at[2].rss-at[1].rss)/warmups, nil)
	b.report.compare("a parked tenant, heap in use", (at[3].heap-at[2].heap)/n, bytesOf,
		"what another message to one tenant leaves", (at[2].heap-at[1].heap)/warmups, nil)
}

// parkAll gives every tenant but the first its first task, and compares what the
// last of these cost with the first. They cannot take turns.
func (b *bench) parkAll(to func(tenant int) error) {
	n := b.parked()
	post := side{"first messages", func(i int) error { return to(1 + i) }}
	early := must(post.slices(0))
	counted := slicesARound * sliceOf
	check(byClients(n-1-2*counted, func(i int) error { return to(1 + counted + i) }))
	late := must(post.slices(n - 1 - counted))
	name := fmt.Sprintf("the very first message of a tenant, %d before it", n-counted)
	b.report.compare(name, late.wall, seconds, "of the first tenants", early.wall, atMost(1.5))
	b.report.compare("computing time of the very first message", late.cpu, seconds, "of the first tenants", early.cpu, atMost(1.5))
}

// byClients calls f for each number below n from as many clients as flood.
func byClients(n int, f func(i int) error) error {
	return spread(floodClients, n, f)
}

// parkedLatency compares the first message to tenants that were parked since the
// host started with another one to a tenant that is warm.
func (b *bench) parkedLatency(url string) {
	cl := clientOf(0)
	defer cl.CloseIdleConnections()
	c := must(b.messages(
		side{"parked", func(i int) error { return message(url, trivialBody).as(keyOf(1+i)).expect(cl, "") }},
		side{"warm", func(int) error { return message(url, trivialBody).as(keyOf(0)).expect(cl, "") }},
	))
	b.report.compare("the first message to a parked tenant", c[0].wall, seconds, "another to a warm one", c[1].wall, none())
	b.report.compare("computing time of the first to a parked one", c[0].cpu, seconds, "another to a warm one", c[1].cpu, none())
}

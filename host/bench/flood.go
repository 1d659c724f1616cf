package main

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// capacity is how many connections the attacked host takes. Attackers have ten
// times as many.
const capacity = 400

// fits is the largest body that attacked servers take, in bytes.
const fits = 64 << 10

// attacked is a host that takes few connections and small bodies. It listens on
// loopback, where there is no limit for an address unless one is set: it gets the
// one that a host has on the internet.
func attacked() string {
	return benchSwarm + fmt.Sprintf("[server]\nmax_connections = %d\nmax_connections_per_address = 256\nmax_body = \"%dKiB\"\n", capacity, fits>>10)
}

// floods measures how long a well-behaved client waits beside those who want to
// harm the host: on one connection that it keeps, and on a new one each time. The
// same attack on a server that has nothing else shows what it does to the machine.
func floods(b *bench) {
	host := must(startHost(b.ctx, attacked()))
	defer host.stop()
	bare := must(startServer(b.ctx, nil, "bare"))
	defer bare.stop()
	attackCases := []attackCase{
		{},
		{on: host.url, kind: slowHeaders, name: slowHeaders, target: atMost(3)},
		{on: host.url, kind: tooLarge, name: tooLarge, target: atMost(3)},
		{on: bare.url, kind: tooLarge, name: tooLarge + " on a bare server", target: none()},
	}
	for _, keep := range []bool{true, false} {
		over := "a new connection each"
		if keep {
			over = "one connection"
		}
		b.compareAttacks(host.url, attackCases, "posts over "+over, keep)
	}
}

// attackCase is what goes on beside a client's posts: an attack on a server,
// or nothing, if it has no kind. That nothing comes before what is compared with it.
type attackCase struct {
	on, kind, name string
	target         *bound
}

// attackResult is what came of a client's posts beside an assault.
type attackResult struct {
	waits  []float64
	lost   int
	opened int64
}

func (b *bench) compareAttacks(host string, attackCases []attackCase, name string, keep bool) {
	all := make([]attackResult, len(attackCases))
	for range b.rounds {
		for i, a := range attackCases {
			check(named("beside "+a.name, b.besideAttack(host, a, keep, &all[i])))
		}
	}
	var alone []float64
	for i, a := range attackCases {
		if a.kind == "" {
			alone = all[i].waits
			continue
		}
		b.beside(name+", "+a.name, all[i], alone, a.target)
	}
}

// beside reports what came of posts beside an attack.
func (b *bench) beside(name string, s attackResult, alone []float64, target *bound) {
	b.report.compareTails(name, s.waits, "alone", alone, target)
	b.report.fact(fmt.Sprintf("  of %d posts lost", len(s.waits)+s.lost), float64(s.lost), count)
	b.report.fact("  connections of the attacker", float64(s.opened), count)
}

// besideAttack posts one message after the other for a span.
func (b *bench) besideAttack(host string, on attackCase, keep bool, s *attackResult) (err error) {
	if on.kind != "" {
		a, failed := startAttacker(b.ctx, on.kind, on.on, 10*capacity)
		if failed != nil {
			return failed
		}
		defer func() {
			var stats attackStats
			err = errors.Join(err, a.call(struct{}{}, &stats))
			s.opened += stats.Connections
			a.stop()
		}()
		time.Sleep(2 * again) // until the attack is there
	}
	cl := &http.Client{Transport: &http.Transport{DisableKeepAlives: !keep}}
	defer cl.CloseIdleConnections()
	for begin := time.Now(); time.Since(begin) < b.span; {
		at := time.Now()
		if err := message(host, trivialBody).expect(cl, ""); err != nil {
			s.lost++
			continue
		}
		s.waits = append(s.waits, time.Since(at).Seconds())
	}
	return nil
}

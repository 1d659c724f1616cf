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
// same attack on a server that has nothing else shows what it does to the machine,
// and to the clients of such a server.
func floods(b *bench) error {
	host, err := hostApart(b.ctx, attacked())
	if err != nil {
		return err
	}
	defer host.stop()
	bare, err := startApart(b.ctx, "bare")
	if err != nil {
		return err
	}
	defer bare.stop()
	assaults := []assault{
		{to: host.url},
		{to: host.url, on: host.url, kind: slowHeaders, name: slowHeaders, target: atMost(3)},
		{to: host.url, on: host.url, kind: tooLarge, name: tooLarge, target: atMost(3)},
		{to: host.url, on: bare.url, kind: tooLarge, name: tooLarge + " on a bare server", target: none()},
		{to: bare.url},
		{to: bare.url, on: bare.url, kind: tooLarge, name: tooLarge + " on the bare server that they are for", target: none()},
	}
	for _, keep := range []bool{true, false} {
		over := "a new connection each"
		if keep {
			over = "one connection"
		}
		if err := b.floodsOn(assaults, "posts over "+over, keep); err != nil {
			return err
		}
	}
	return nil
}

// assault is what goes on beside a client's posts to a server: an attack on one,
// or nothing, if it has no kind. That nothing comes before what is compared with it.
type assault struct {
	to, on, kind, name string
	target             *bound
}

// suffered is what came of a client's posts beside an assault.
type suffered struct {
	waits  []float64
	lost   int
	opened int64
}

func (b *bench) floodsOn(assaults []assault, name string, keep bool) error {
	all := make([]suffered, len(assaults))
	for range b.rounds {
		for i, a := range assaults {
			if err := b.besideAttack(a, keep, &all[i]); err != nil {
				return fmt.Errorf("beside %s: %w", a.name, err)
			}
		}
	}
	var alone []float64
	for i, a := range assaults {
		if a.kind == "" {
			alone = all[i].waits
			continue
		}
		b.beside(name+", "+a.name, all[i], alone, a.target)
	}
	return nil
}

// beside reports what came of posts beside an attack.
func (b *bench) beside(name string, s suffered, alone []float64, target *bound) {
	b.report.compare(name+", p50", median(s.waits), seconds, "alone", median(alone), none())
	b.report.compare(name+", p99", percentile(s.waits, 99), seconds, "alone", percentile(alone, 99), target)
	b.report.fact(fmt.Sprintf("  of %d posts lost", len(s.waits)+s.lost), float64(s.lost), count)
	b.report.fact("  connections of the attacker", float64(s.opened), count)
}

// besideAttack posts one message after the other for a span.
func (b *bench) besideAttack(on assault, keep bool, s *suffered) (err error) {
	if on.kind != "" {
		a, failed := startAttacker(b.ctx, on.kind, on.on, 10*capacity)
		if failed != nil {
			return failed
		}
		defer func() {
			h, failed := a.stop()
			s.opened += h.Connections
			err = errors.Join(err, failed)
		}()
		time.Sleep(2 * again) // until the attack is there
	}
	cl := &http.Client{Transport: &http.Transport{DisableKeepAlives: !keep}}
	defer cl.CloseIdleConnections()
	for begin := time.Now(); time.Since(begin) < b.span; {
		at := time.Now()
		if err := postAs(cl, on.to+"/message", benchKey, trivialBody); err != nil {
			s.lost++
			continue
		}
		s.waits = append(s.waits, time.Since(at).Seconds())
	}
	return nil
}

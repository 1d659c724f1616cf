package main

import (
	"fmt"
	"net/http"
	"time"
)

// capacity is how many connections the attacked host takes. Attackers have ten
// times as many.
const capacity = 400

// attacked is a host that takes few connections and small bodies.
func attacked() string {
	return benchSwarm + fmt.Sprintf("[server]\nmax_connections = %d\nmax_body = \"64KiB\"\n", capacity)
}

// floods measures how long a well-behaved client waits beside those who want to
// harm the host: on one connection that it keeps, and on a new one each time. The
// same attack on a server that has nothing else shows what it does to the machine.
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
	attacks := []assault{
		{"alone", "", ""}, {slowHeaders, slowHeaders, host.url}, {tooLarge, tooLarge, host.url},
		{tooLarge + " on a bare server", tooLarge, bare.url},
	}
	for _, keep := range []bool{true, false} {
		if err := b.floodsOn(host.url, attacks, keep); err != nil {
			return err
		}
	}
	return nil
}

// assault is what goes on beside a client's posts.
type assault struct{ name, kind, url string }

func (b *bench) floodsOn(url string, attacks []assault, keep bool) error {
	waits, lost, opened := make([][]float64, len(attacks)), make([]int, len(attacks)), make([]int64, len(attacks))
	for range b.rounds {
		for i, a := range attacks {
			w, failed, h, err := b.besideAttack(url, a, keep)
			if err != nil {
				return fmt.Errorf("beside %s: %w", a.name, err)
			}
			waits[i], lost[i], opened[i] = append(waits[i], w...), lost[i]+failed, opened[i]+h.Connections
		}
	}
	over := "a new connection each"
	if keep {
		over = "one connection"
	}
	for i, a := range attacks[1:] {
		target := atMost(3)
		if a.url != url {
			target = none()
		}
		name := fmt.Sprintf("posts over %s, %s", over, a.name)
		b.report.compare(name+", p50", median(waits[i+1]), seconds, "alone", median(waits[0]), none())
		b.report.compare(name+", p99", percentile(waits[i+1], 99), seconds, "alone", percentile(waits[0], 99), target)
		b.report.fact(fmt.Sprintf("  of %d posts lost", len(waits[i+1])+lost[i+1]), float64(lost[i+1]), count)
		b.report.fact("  connections of the attacker", float64(opened[i+1]), count)
	}
	return nil
}

// besideAttack posts one message after the other; an empty kind is no attack.
func (b *bench) besideAttack(url string, on assault, keep bool) (waits []float64, lost int, h harm, err error) {
	if on.kind != "" {
		a, err := startAttacker(b.ctx, on.kind, on.url, 10*capacity)
		if err != nil {
			return nil, 0, h, err
		}
		defer func() {
			stopped, failed := a.stop()
			if h = stopped; err == nil {
				err = failed
			}
		}()
		time.Sleep(2 * again) // until the attack is there
	}
	cl := &http.Client{Transport: &http.Transport{DisableKeepAlives: !keep}}
	defer cl.CloseIdleConnections()
	for begin := time.Now(); time.Since(begin) < b.span; {
		at := time.Now()
		if err := postAs(cl, url+"/message", benchKey, trivialBody); err != nil {
			lost++
			continue
		}
		waits = append(waits, time.Since(at).Seconds())
	}
	return waits, lost, h, nil
}

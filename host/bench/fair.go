package main

import (
	"fmt"
	"strings"
	"time"
)

// floodClients is how many clients of one tenant post as fast as they can.
const floodClients = 16

const (
	trivialBody = `{"body":"hello","subject":"q"}`
	burnBody    = `{"body":"[[\"burn\",{\"ms\":5}],[\"task_complete\",{\"finish_message\":\"done\"}]]","subject":"q"}`
)

// fairness measures how long a tenant that posts one message at a time waits,
// alone and beside one that floods the host, and what two tenants get that both
// flood it. The host and each tenant's clients have a process of their own. The
// floods of an echo, which this process serves, and of another host show what a busy
// machine does to the same messages: no host does better on this machine.
func fairness(b *bench) {
	for _, weight := range []int{1, 4} {
		b.fairWith(weight)
	}
	b.weights()
}

// principals is how many callers, each with an instance of its own, a tenant has.
const principals = 8

// fairSwarm has a tenant "flood" of weight 1, and a tenant "calm".
func fairSwarm(weight int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s[tenants.flood]\n[tenants.calm]\nweight = %d\n", benchSwarm, weight)
	for _, tenant := range []string{"flood", "calm"} {
		for i, key := range fairKeys(tenant) {
			fmt.Fprintf(&text, "[[auth.keys]]\nid = \"u%d\"\nrole = \"user\"\ntenant = %q\nkey = %q\n", i, tenant, key)
		}
	}
	return text.String()
}

// fairKeys are the keys of a tenant's principals.
func fairKeys(tenant string) []string {
	keys := make([]string, principals)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s-%d-%s", tenant, i, benchKey)
	}
	return keys
}

// tenantPair are a host and the customers of its two tenants.
type tenantPair struct {
	url         string
	calm, flood *child
	end         func()
}

func (b *bench) tenantPair(swarm string, calmRemote bool) (_ *tenantPair, err error) {
	h, err := startHost(b.ctx, swarm)
	if err != nil {
		return nil, err
	}
	c := &tenantPair{url: h.url, end: h.stop}
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	if c.calm, err = startLoadGenerator(b.ctx, calmRemote); err != nil {
		return nil, err
	}
	c.flood, err = startLoadGenerator(b.ctx, true)
	return c, err
}

func (c *tenantPair) stop() {
	for _, one := range []*child{c.calm, c.flood} {
		if one != nil {
			one.stop()
		}
	}
	c.end()
}

// flood is what goes on beside a tenant's messages.
type flood struct{ name, url, body string }

func (b *bench) fairWith(weight int) {
	c := must(b.tenantPair(fairSwarm(weight), false))
	defer c.stop()
	echo, stopEcho := must2(listen(echoServer()))
	defer stopEcho()
	floods := []flood{
		{"alone", "", ""},
		{"a flood of trivial turns", c.url, trivialBody},
		{"a flood of turns of 5 ms", c.url, burnBody},
	}
	if weight == 1 {
		other := must(startHost(b.ctx, fairSwarm(weight)))
		defer other.stop()
		floods = append(floods, flood{"a flood of an echo, no host", echo, trivialBody},
			flood{"trivial turns that flood another host", other.url, trivialBody}, flood{"turns of 5 ms that flood another host", other.url, burnBody})
	}
	waits := make([][]float64, len(floods))
	rates := make([][]float64, len(floods))
	for range b.rounds {
		for i, f := range floods {
			w, rate, err := c.beside(f, b.span)
			check(named(f.name, err))
			waits[i], rates[i] = append(waits[i], w...), append(rates[i], rate)
		}
	}
	b.reportFair(weight, floods, waits, rates)
}

func (b *bench) reportFair(weight int, floods []flood, waits, rates [][]float64) {
	for i, f := range floods[1:] {
		target := none()
		if i < 2 { // a message may wait for one turn of 5 ms
			target = []*bound{atMost(2), atMost(3)}[i]
		}
		name := fmt.Sprintf("weight %d to 1, %s", weight, f.name)
		b.report.compareTails(name, waits[i+1], "alone", waits[0], target)
		b.report.fact(fmt.Sprintf("  messages of the flood (%d of the other)", len(waits[i+1])), median(rates[i+1]), rate)
	}
}

// beside measures how long each message of the calm tenant takes, and how many
// messages a second the flood gets through.
func (c *tenantPair) beside(f flood, span time.Duration) (waits []float64, rate float64, err error) {
	much := order{URL: f.url, Keys: fairKeys("flood"), Body: f.body, Clients: floodClients}
	if f.url != "" {
		if err := c.flood.to.Encode(much); err != nil {
			return nil, 0, err
		}
	}
	time.Sleep(span / 8) // until the flood is there
	few := order{URL: c.url, Keys: fairKeys("calm"), Body: trivialBody, Clients: 1, Span: span}
	if err := c.calm.to.Encode(few); err != nil {
		return nil, 0, err
	}
	calm, err := few.finish(c.calm)
	if err != nil || f.url == "" {
		return calm.Waits, 0, err
	}
	got, err := much.finish(c.flood)
	return calm.Waits, got.rate(), err
}

// heavy is the weight of the one of two floods that is to get more.
const heavy = 3

// weights lets both tenants flood a host of few slots for turns, so that what
// they wait for is their turn.
func (b *bench) weights() {
	c := must(b.tenantPair(strings.Replace(fairSwarm(heavy), "queue = 0", "queue = 0\nturns = 8", 1), true))
	defer c.stop()
	for _, f := range []flood{
		{"trivial turns", c.url, trivialBody},
		{"turns of 5 ms", c.url, burnBody},
	} {
		var many, few []float64
		for range b.rounds {
			o := order{URL: c.url, Body: f.body, Clients: floodClients, Span: b.span}
			light := o
			o.Keys, light.Keys = fairKeys("calm"), fairKeys("flood")
			got, err := both(c, o, light)
			check(named("two floods of "+f.name, err))
			many, few = append(many, got[0].rate()), append(few, got[1].rate())
		}
		b.report.compare("two floods of "+f.name+", weight 3", median(many), rate, "weight 1", median(few), none())
	}
}

// both lets both customers post at once.
func both(c *tenantPair, calm, flood order) (got [2]posted, err error) {
	if err := c.calm.to.Encode(calm); err != nil {
		return got, err
	}
	if err := c.flood.to.Encode(flood); err != nil {
		return got, err
	}
	if got[0], err = calm.finish(c.calm); err != nil {
		return got, err
	}
	got[1], err = flood.finish(c.flood)
	return got, err
}

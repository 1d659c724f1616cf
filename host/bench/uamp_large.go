package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"skep/host/internal/gateway/uamp/envelope"
)

const (
	largeCallers = 64
	// largeText is the size of an envelope's text in bytes; the host takes 1 MiB with the members.
	largeText = 1<<20 - 4<<10
)

// besideLargeUAMP compares how long another caller's message takes beside 64 callers that send
// envelopes of 1 MiB, with how long it takes without them: with a host, and with a server that
// only reads them. The callers have a process of their own, of the lowest priority, because they
// stand for other machines.
func besideLargeUAMP(b *bench) {
	host := must(startHost(b.ctx, uampSwarm(must(newUAMPAgent()))))
	defer host.stop()
	bare := must(startServer(b.ctx, nil, "reader"))
	defer bare.stop()
	callers := must(startChild(b.ctx, nil, "large"))
	defer callers.stop()
	check(callers.lowerPriority())
	cases := []*largeCase{
		{name: fmt.Sprintf("another user's message beside %d callers with UAMP envelopes of 1 MiB", largeCallers), url: host.url, want: "boss got", target: atMost(2)},
		{name: "  the same, envelopes that were sent before", url: host.url, want: "boss got", repeat: true, target: none()},
		{name: "  a server that only reads them, and an echo at it", url: bare.url, want: "hello", target: none()},
	}
	for range b.rounds {
		for _, c := range cases {
			check(named(c.name, c.measure(callers, b.span)))
		}
	}
	for _, c := range cases {
		b.report.compareTails(c.name, c.beside, "without them", c.quiet, c.target)
		b.report.fact("  envelopes taken", median(c.rates), rate)
	}
}

// largeCase is a server to which callers send large envelopes, and what another caller's message
// there is answered with.
type largeCase struct {
	name, url, want string
	// repeat has each caller send one envelope again and again.
	repeat bool
	target *bound
	// quiet and beside are the times of messages in seconds, without and beside the callers.
	quiet, beside []float64
	rates         []float64 // of envelopes that were taken
}

func (c *largeCase) measure(callers *child, span time.Duration) error {
	times, err := c.timed(span)
	if err != nil {
		return err
	}
	c.quiet = append(c.quiet, times...)
	if err := callers.to.Encode(largeOrder{URL: c.url, Repeat: c.repeat}); err != nil {
		return err
	}
	time.Sleep(span / 8) // until the callers are there
	times, failed := c.timed(span)
	if err := callers.to.Encode(largeOrder{}); err != nil {
		return err
	}
	var p posted
	if err := callers.receiveReply(&p); err != nil {
		return err
	}
	if len(p.Waits) == 0 && failed == nil {
		failed = fmt.Errorf("no envelope of 1 MiB was taken in %s", span)
	}
	c.beside, c.rates = append(c.beside, times...), append(c.rates, p.rate())
	return failed
}

// timed are the times that messages of one user take, one after the other, in seconds.
func (c *largeCase) timed(span time.Duration) (times []float64, err error) {
	cl := clientOf(1)
	defer cl.CloseIdleConnections()
	for begin := time.Now(); time.Since(begin) < span; {
		sent := time.Now()
		if err := message(c.url, trivialBody).expect(cl, c.want); err != nil {
			return nil, err
		}
		times = append(times, time.Since(sent).Seconds())
	}
	return times, nil
}

// readerJob serves an echo, and takes envelopes without a look at them.
func readerJob(_ context.Context, p pipe, _ []string) error {
	mux := http.NewServeMux()
	mux.Handle("POST /message", echoServer())
	mux.HandleFunc("POST /v1/messages", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err == nil {
			w.WriteHeader(http.StatusAccepted)
		}
	})
	return p.serveHTTP(mux)
}

// largeOrder has callers send envelopes until the next order.
type largeOrder struct {
	URL    string
	Repeat bool
}

// largeJob sends what the orders of its parent request.
func largeJob(ctx context.Context, p pipe, _ []string) error {
	agent, err := newUAMPAgent()
	if err != nil {
		return err
	}
	for {
		var o largeOrder
		if err := p.from.Decode(&o); err != nil {
			return err
		}
		ctx, end := context.WithCancel(ctx)
		go func() {
			defer end()
			_ = p.from.Decode(&largeOrder{})
		}()
		sent, err := agent.sendLarge(ctx, o)
		if err == nil {
			err = p.sendReply(sent)
		}
		if err != nil {
			return err
		}
	}
}

// sendLarge sends envelopes from all callers, each over a connection of its own, until ctx ends.
// A host that is busy refuses some of them, which do not count.
func (a uampAgent) sendLarge(ctx context.Context, o largeOrder) (p posted, err error) {
	waits, failed := make([][]float64, largeCallers), make(chan error, largeCallers)
	began := time.Now()
	for n := range largeCallers {
		go func() {
			cl := clientOf(1)
			defer cl.CloseIdleConnections()
			failed <- a.sendEach(ctx, cl, o, n, &waits[n])
		}()
	}
	for range largeCallers {
		if one := <-failed; one != nil {
			err = one
		}
	}
	for _, w := range waits {
		p.Waits = append(p.Waits, w...)
	}
	p.Span = time.Since(began).Seconds()
	return p, err
}

// sendEach sends the envelopes of one caller.
func (a uampAgent) sendEach(ctx context.Context, cl *http.Client, o largeOrder, n int, waits *[]float64) error {
	e, err := a.newLarge(n)
	var text string
	for first := true; err == nil && ctx.Err() == nil; first = false {
		if first || !o.Repeat {
			if text, err = e.sign(a.key); err != nil {
				return err
			}
		}
		sent := time.Now()
		var status int
		status, err = postLarge(ctx, cl, o.URL, text)
		if err == nil && status == http.StatusAccepted {
			*waits = append(*waits, time.Since(sent).Seconds())
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// newLarge is an envelope of nearly 1 MiB.
func (a uampAgent) newLarge(n int) (largeEnvelope, error) {
	e := a.newEnvelope()
	e.Intent, e.Body = envelope.Ask, envelope.NewBody("text/plain", []byte(strings.Repeat(fmt.Sprintf("%7d ", n), largeText/8)))
	return newLargeEnvelope(e)
}

// postLarge sends an envelope and returns the status of the answer.
func postLarge(ctx context.Context, cl *http.Client, url, text string) (int, error) {
	req, err := postTo(url+"/v1/messages", text).as(labKey).with("Content-Type", "application/uamp+json;v=1").build(ctx)
	if err != nil {
		return 0, err
	}
	rsp, err := cl.Do(req)
	if err != nil {
		return 0, err
	}
	return rsp.StatusCode, rsp.Body.Close()
}

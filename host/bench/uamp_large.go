package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"skep/host/internal/gateway/uamp/envelope"
)

const (
	largeCallers = 64
	// largeText is the size of an envelope's text in bytes; the host takes 1 MiB with the members.
	largeText = 1<<20 - 4<<10
	// largeEach is how many envelopes a caller has, which it sends again and again: signing takes the
	// time of the machine that the host has.
	largeEach = 2
)

// besideLargeUAMP compares how long another caller's message takes beside 64 callers that send
// envelopes of 1 MiB, with how long it takes without them.
func besideLargeUAMP(b *bench) {
	agent := must(newUAMPAgent())
	host := must(startHost(b.ctx, uampSwarm(agent)))
	defer host.stop()
	var texts []string
	for n := range largeCallers * largeEach {
		texts = append(texts, must(agent.newLarge(n)))
	}
	var quiet, beside []float64
	for range b.rounds {
		quiet = append(quiet, must(timed(host.url, b.span))...)
		end := agent.sendLarge(host.url, texts)
		during := must(timed(host.url, b.span))
		sent := must(end())
		if beside = append(beside, during...); sent == 0 {
			check(fmt.Errorf("no envelope of 1 MiB was taken in %s", b.span))
		}
	}
	b.report.compareTails(fmt.Sprintf("another user's message beside %d callers with UAMP envelopes of 1 MiB", largeCallers), beside, "without them", quiet, atMost(2))
}

// newLarge is the text of a signed envelope of nearly 1 MiB.
func (a uampAgent) newLarge(n int) (string, error) {
	e := a.newEnvelope()
	e.Intent, e.Body = envelope.Ask, envelope.NewBody("text/plain", []byte(strings.Repeat(fmt.Sprintf("%7d ", n), largeText/8)))
	sum, err := e.Sum()
	if err == nil {
		e.Sig, err = a.key.Sign(sum)
	}
	if err != nil {
		return "", err
	}
	text, err := e.Text()
	return string(text), err
}

// timed are the times that messages of one user take, one after the other, in seconds.
func timed(url string, span time.Duration) (times []float64, err error) {
	cl := clientOf(1)
	defer cl.CloseIdleConnections()
	for begin := time.Now(); time.Since(begin) < span; {
		sent := time.Now()
		if err := message(url, `{"body":"hello","subject":"q"}`).expect(cl, "boss got"); err != nil {
			return nil, err
		}
		times = append(times, time.Since(sent).Seconds())
	}
	return times, nil
}

// sendLarge sends envelopes from all callers until end is called, which returns how many were
// taken. A host that is busy refuses some of them.
func (a uampAgent) sendLarge(url string, texts []string) (end func() (int, error)) {
	ctx, stop := context.WithCancel(context.Background())
	cl := clientOf(largeCallers)
	var wg sync.WaitGroup
	var mu sync.Mutex
	taken, broken := 0, error(nil)
	for n := range largeCallers {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				status, err := postLarge(ctx, cl, url, texts[n*largeEach+i%largeEach])
				mu.Lock()
				switch {
				case ctx.Err() != nil:
				case err != nil:
					broken = err
				case status == http.StatusAccepted:
					taken++
				}
				mu.Unlock()
			}
		})
	}
	return func() (int, error) {
		stop()
		wg.Wait()
		cl.CloseIdleConnections()
		return taken, broken
	}
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

package main

import (
	"fmt"
	"net/http"
	"time"
)

// tokens measures what a token of a model's answer costs on its way to an agent,
// beside the providers' own clients without a host.
func tokens(b *bench) {
	computing, restore := hostProcess()
	defer restore()
	server := must(startServer(b.ctx, nil, "provider"))
	defer server.stop()
	module, program := must2(sdkPrograms())
	cl := clientOf(4)
	defer cl.CloseIdleConnections()
	var urls []string
	for _, swarm := range []string{
		modelSwarm(sourceOf("file", module), "openai", server.url+"/v1"),
		modelSwarm(sourceOf("exec", program), "openai", server.url+"/v1"),
		modelSwarm(sourceOf("file", module), "anthropic", server.url),
	} {
		url, stop := must2(runTemporaryHost(b.ctx, swarm, computing))
		defer stop()
		urls = append(urls, url)
	}
	all := modelClients(cl, server.url, urls)
	for _, measure := range []func([]modelClient){b.fastTokens, b.pacedTokens, b.oneToken} {
		measure(all)
	}
}

// modelClient is a way from the provider to a reader. Its peer, of those before it, is
// one without a host.
type modelClient struct {
	name string
	asks asks
	peer int
	// whole: the provider sends the answer in one piece, without tokens.
	whole bool
}

func modelClients(cl *http.Client, provider string, hosts []string) []modelClient {
	return []modelClient{
		{name: "openai-go, streamed", asks: officialOpenAI(cl, provider, true)},
		{name: "openai-go, whole", asks: officialOpenAI(cl, provider, false), whole: true},
		{name: "anthropic-sdk-go, streamed", asks: officialAnthropic(cl, provider)},
		{name: "net/http, lines", asks: lines(cl, provider)},
		{name: "llm.chat, openai, pieces to a module", asks: byAgent(cl, hosts[0], "stream"), peer: 0},
		{name: "llm.chat, openai, whole to a module", asks: byAgent(cl, hosts[0], "chat"), peer: 1, whole: true},
		{name: "llm.chat, openai, pieces to a process", asks: byAgent(cl, hosts[1], "stream"), peer: 0},
		{name: "llm.chat, anthropic, pieces to a module", asks: byAgent(cl, hosts[2], "stream"), peer: 2},
		{name: "llm.chat, anthropic, whole to a module", asks: byAgent(cl, hosts[2], "chat"), peer: 2},
	}
}

// withHost is the first contender that has a host, bareLines the one that decodes
// nothing.
const (
	bareLines = 3
	withHost  = 4
)

// longAnswer is how many tokens the answer has from which the cost of one is taken.
func (b *bench) longAnswer() int {
	if b.quick {
		return 500
	}
	return 4000
}

// fastTokens sends all tokens at once, so that reading them is what takes the time.
func (b *bench) fastTokens(all []modelClient) {
	subjects := make([]subject, len(all))
	for i, c := range all {
		if c.whole {
			subjects[i] = subject{c.name, func(span time.Duration) (int, time.Duration, error) { return 1, span, nil }}
			continue
		}
		ask := func(n int) func() error {
			return func() error { _, err := b.timed(c, question{Tokens: n}); return err }
		}
		subjects[i] = difference(c.name, b.longAnswer(), busy, ask(1), ask(1+b.longAnswer()))
	}
	cost := must(b.costs(subjects...))
	for i, c := range all[withHost:] {
		if c.whole {
			continue
		}
		own, target := cost[withHost+i], none()
		if i == 0 {
			target = atMost(1.3)
		}
		b.report.compare("computing time of a token, "+c.name, own, seconds, all[c.peer].name, cost[c.peer], target)
		if c.peer == 0 {
			b.report.compare("the same", own, seconds, all[bareLines].name+", nothing decoded", cost[bareLines], none())
		}
	}
}

// timed asks once, and wants all tokens.
func (b *bench) timed(c modelClient, q question) (time.Duration, error) {
	began := time.Now()
	size, err := c.asks(b.ctx, q)
	if err == nil && size != q.Tokens*len(token) {
		err = fmt.Errorf("%d bytes came of %d tokens", size, q.Tokens)
	}
	return time.Since(began), err
}

// pace is how far apart tokens are where they are paced.
const pace = time.Millisecond

// pacedTokens sends a token each millisecond. What reading them then costs is
// computing time: the clock waits for the provider.
func (b *bench) pacedTokens(all []modelClient) {
	chosen := []int{0, withHost, withHost + 2}
	cpu, late := make([][]float64, len(chosen)), make([][]float64, len(chosen))
	n := max(int(b.span/4/pace), 100)
	for range b.rounds {
		for i, k := range chosen {
			busy := processors()
			took, err := b.timed(all[k], question{Tokens: n, Pause: pace})
			check(named(all[k].name, err))
			cpu[i] = append(cpu[i], (processors()-busy)/float64(n))
			late[i] = append(late[i], (took - time.Duration(n)*pace).Seconds())
		}
	}
	peer := all[0].name
	for i, k := range chosen[1:] {
		name := all[k].name
		b.report.compare("computing time of a token each ms, "+name, median(cpu[i+1]), seconds, peer, median(cpu[0]), none())
		b.report.compare("the rest of that answer's time, "+name, median(late[i+1]), seconds, peer, median(late[0]), none())
	}
}

// oneToken compares a whole task that asks for one token with the call alone: a
// turn in its sandbox, and the writes that make it durable.
func (b *bench) oneToken(all []modelClient) {
	subjects := make([]subject, len(all))
	for i, c := range all {
		subjects[i] = repeated(c.name, func() error {
			_, err := b.timed(c, question{Tokens: 1})
			return err
		})
	}
	cost := must(b.costs(subjects...))
	for i, c := range all[withHost:] {
		b.report.compare("a durable task of one token, "+c.name, cost[withHost+i], seconds, all[c.peer].name+", the call alone", cost[c.peer], none())
	}
}

package main

import (
	"context"
	"sync/atomic"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
	"skep/host/internal/turn/capability"
	"skep/host/internal/turn/egress"
)

// writes counts what turns of each class of op make durable. The bounds are those
// of the design; a turn that wrote less would not keep its promise either.
func writes(b *bench) {
	value := "v"
	for _, c := range []struct {
		name  string
		op    abi.Op
		req   any
		fixed float64
	}{
		{"no op but the answer", 0, nil, 1},
		{"kv.put, staged", abi.OpKVPut, abi.KVPutRequest{Key: "k", Value: &value}, 1},
		{"kv.cas, immediate", abi.OpKVCas, abi.KVCasRequest{Key: "k", Value: &value}, 2},
		{"http.fetch, effect", abi.OpHTTPFetch, abi.FetchRequest{Method: "GET", URL: "http://site/"}, 3},
	} {
		n, took := countWrites(b, func(ctx context.Context, ops turn.Ops) *abi.Error {
			if c.req != nil {
				if fault := request(ctx, ops, c.op, c.req); fault != nil {
					return fault
				}
			}
			return completes(ctx, ops)
		})
		b.report.compare("writes of a turn: "+c.name, n, count, "the design's number", c.fixed, exactly())
		b.report.fact("  from post to answer, with the write of the post", took, seconds)
	}
}

// turnsCounted is how many turns of each class are counted.
const turnsCounted = 100

func countWrites(b *bench, agent native) (writes, took float64) {
	var n *counter
	h := must(openRuntime(b.ctx, runtimeOptions{
		agents:  map[string]native{"boss": agent},
		binding: capability.Binding{Allow: capability.Allow{KV: swarm.KVInstance}, Fetcher: web{}},
		wrap:    func(s swarm.Store) swarm.Store { n = &counter{Store: s}; return n },
	}))
	defer h.end()
	all := must(b.messages(side{"counted", func(int) error { return h.ask(b.ctx, benchPost(swarm.DefaultTenant, "bench", "")) }}))
	n.turns.Store(0)
	n.n.Store(0)
	for range turnsCounted {
		check(h.ask(b.ctx, benchPost(swarm.DefaultTenant, "bench", "")))
	}
	return float64(n.n.Load()) / float64(n.turns.Load()), all[0].wall
}

// counter counts the writes of turns; posts are counted separately.
type counter struct {
	swarm.Store
	n, turns atomic.Int64
}

func (c *counter) Accept(ctx context.Context, step swarm.Mutation, sub swarm.Submission) (swarm.Submission, error) {
	c.turns.Add(1)
	return c.Store.Accept(ctx, step, sub)
}

func (c *counter) Commit(ctx context.Context, step swarm.Mutation) error {
	c.n.Add(1)
	return c.Store.Commit(ctx, step)
}

func (c *counter) Journal(ctx context.Context, key swarm.TaskKey, turn int64, w swarm.JournalWrite) (bool, error) {
	c.n.Add(1)
	return c.Store.Journal(ctx, key, turn, w)
}

// web answers requests without a network.
type web struct{}

func (web) Check(egress.Policy, abi.FetchRequest) *abi.Error { return nil }

func (web) Fetch(context.Context, egress.Policy, string, abi.FetchRequest) (abi.FetchResponse, *abi.Error) {
	return abi.FetchResponse{Status: 200, Body: "page"}, nil
}

package main

import (
	"context"
	"fmt"

	"skep/abi"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
)

// growth compares what a message costs in a large place and in a small one. The
// agents are native: a sandbox costs the same in both.
func growth(b *bench) {
	p := must(newTaskTemplate(b.ctx))
	for _, part := range []func(*bench, taskTemplate){
		growPosts, growResponses, growHistory, growTasks, growTenants, growInstances,
	} {
		part(b, p)
	}
}

// pair opens two hives, compares them and closes them.
func (b *bench) pair(large, small runtimeOptions, sides func(large, small *nativeRuntime) (side, side)) {
	l := must(openRuntime(b.ctx, large))
	defer l.end()
	s := must(openRuntime(b.ctx, small))
	defer s.end()
	b.grown(sides(l, s))
}

// queued is a runtime of which one task has a queue that stays as long as it is:
// each message that comes lets one go.
type queued struct {
	gate
	runtimeOptions
}

// growPosts keeps posts waiting in one task. Every turn completes, which answers
// the post it had and lets the task run on for the others.
func growPosts(b *bench, _ taskTemplate) {
	newQueue := func() queued {
		g := newGate()
		return queued{g, runtimeOptions{agents: map[string]native{"boss": func(ctx context.Context, ops turn.Ops) *abi.Error {
			g.hold(ctx)
			return completes(ctx, ops)
		}}}}
	}
	large, small := newQueue(), newQueue()
	b.pair(large.runtimeOptions, small.runtimeOptions, func(l, s *nativeRuntime) (side, side) {
		return postedSide(b, l, large.gate, 1000), postedSide(b, s, small.gate, 1)
	})
}

func postedSide(b *bench, h *nativeRuntime, g gate, depth int) side {
	p := benchPost(swarm.DefaultTenant, "bench", "queue")
	filled := false
	return side{fmt.Sprintf("posts waiting in its task: %d", depth), func(int) error {
		if !filled {
			filled = true
			if err := seedAll(depth+1, func(int) error { _, err := h.rt.Submit(b.ctx, p); return err }); err != nil {
				return err
			}
			<-g.arrived
		}
		if _, err := h.rt.Submit(b.ctx, p); err != nil {
			return err
		}
		g.through <- struct{}{}
		<-g.arrived
		return nil
	}}
}

// growResponses keeps responses of a worker waiting at the boss. A message is the
// boss's turn, which asks the worker, and the worker's, which answers.
func growResponses(b *bench, p taskTemplate) {
	newQueue := func(depth int) (queued, side) {
		g, answered := newGate(), make(chan struct{}, 1)
		c := runtimeOptions{agents: map[string]native{
			"boss": func(ctx context.Context, ops turn.Ops) *abi.Error {
				g.hold(ctx)
				return tool(ctx, ops, "send_request", map[string]string{"target": "worker", "subject": "q", "body": "hello"})
			},
			"worker": func(ctx context.Context, ops turn.Ops) *abi.Error {
				fault := tool(ctx, ops, "send_response", map[string]string{"target": "boss", "subject": "q", "body": "hello"})
				answered <- struct{}{}
				return fault
			},
		}, seed: func(s *sqlite.Store) error {
			return p.seed(b.ctx, s, "bench", "queue", size{rows: depth}, waits)
		}}
		begun := false
		return queued{g, c}, side{fmt.Sprintf("answered, responses waiting: %d", depth), func(int) error {
			if !begun {
				begun = true
				<-g.arrived
			}
			g.through <- struct{}{}
			<-answered
			<-g.arrived
			return nil
		}}
	}
	large, largeSide := newQueue(1000)
	small, smallSide := newQueue(1)
	b.pair(large.runtimeOptions, small.runtimeOptions, func(_, _ *nativeRuntime) (side, side) { return largeSide, smallSide })
}

// growHistory posts to finished tasks whose agent has a history. The input holds
// its last 50 entries, so there are two peers: one with few, one with as many.
func growHistory(b *bench, p taskTemplate) {
	long := 10_000
	if b.full {
		long = 100_000
	}
	one := runtimeOptions{agents: map[string]native{"boss": completes}, seed: func(s *sqlite.Store) error {
		return p.seed(b.ctx, s, "bench", "h-0", size{history: long}, nil)
	}}
	for _, short := range []int{10, 100} {
		many := one
		many.seed = func(s *sqlite.Store) error {
			return seedAll((b.rounds*slicesARound+1)*sliceOf, func(i int) error {
				return p.seed(b.ctx, s, "bench", fmt.Sprintf("h-%d", i), size{history: short}, nil)
			})
		}
		at := func(h *nativeRuntime, entries int, task func(i int) string) side {
			return side{fmt.Sprintf("a history of %d", entries), func(i int) error {
				return h.ask(b.ctx, benchPost(swarm.DefaultTenant, "bench", task(i)))
			}}
		}
		b.pair(one, many, func(l, s *nativeRuntime) (side, side) {
			return at(l, long, func(int) string { return "h-0" }), at(s, short, func(i int) string { return fmt.Sprintf("h-%d", i) })
		})
	}
}

// growTasks posts new tasks to an instance that has many.
func growTasks(b *bench, p taskTemplate) {
	of := func(n int) runtimeOptions {
		return runtimeOptions{agents: map[string]native{"boss": completes}, seed: func(s *sqlite.Store) error {
			return p.seedTasks(b.ctx, s, n, one)
		}}
	}
	large, small := 10_000, 10
	if b.full {
		large, small = 100_000, 100
	}
	b.pair(of(large), of(small), func(l, s *nativeRuntime) (side, side) {
		at := func(h *nativeRuntime, n int) side {
			return side{fmt.Sprintf("%d tasks in its instance", n), func(int) error {
				return h.ask(b.ctx, benchPost(swarm.DefaultTenant, "bench", ""))
			}}
		}
		return at(l, large), at(s, small)
	})
}

// growTenants posts to one tenant after the other.
func growTenants(b *bench, _ taskTemplate) {
	b.spreadOver("tenants", tenantNames(1000), func(i int) (string, string) { return tenantName(i % 1000), "bench" })
}

// growInstances posts for one principal after the other.
func growInstances(b *bench, _ taskTemplate) {
	b.spreadOver("instances", nil, func(i int) (string, string) { return swarm.DefaultTenant, fmt.Sprint("p", i%1000) })
}

// spreadOver compares 1,000 parties, of which each has had a task, with one.
func (b *bench) spreadOver(what string, tenants []string, party func(i int) (tenant, principal string)) {
	agents := map[string]native{"boss": completes}
	b.pair(runtimeOptions{tenants: tenants, agents: agents}, runtimeOptions{agents: agents}, func(l, s *nativeRuntime) (side, side) {
		filled := false
		post := func(h *nativeRuntime, i int, party func(int) (string, string)) error {
			tenant, principal := party(i)
			return h.ask(b.ctx, benchPost(tenant, principal, ""))
		}
		large := side{"one of 1,000 " + what, func(i int) error {
			if !filled {
				filled = true
				if err := seedAll(1000, func(i int) error { return post(l, i, party) }); err != nil {
					return err
				}
			}
			return post(l, i, party)
		}}
		small := side{"one of 1", func(i int) error {
			return post(s, i, func(int) (string, string) { return swarm.DefaultTenant, "bench" })
		}}
		return large, small
	})
}

func tenantName(i int) string { return fmt.Sprintf("t%d", i) }

func tenantNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = tenantName(i)
	}
	return names
}

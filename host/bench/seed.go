package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// seeders is how many goroutines fill a store; the writer groups what they write.
const seeders = 128

// taskTemplate is a finished task of one turn, as the runtime handed it to the store,
// from which others are made. Its steps must not be changed.
type taskTemplate struct {
	step swarm.Mutation // all of it in one, without its row
	sub  swarm.Submission
	row  swarm.Row
	// entry is one of the boss's history.
	entry swarm.AgentEntry
}

// newTaskTemplate records a task that the real runtime has run.
func newTaskTemplate(ctx context.Context) (p taskTemplate, err error) {
	var rec *recorder
	h, err := openRuntime(ctx, runtimeOptions{
		agents: map[string]native{"boss": completes},
		wrap: func(s swarm.Store) swarm.Store {
			rec = &recorder{Store: s.(*sqlite.Store), tasks: map[swarm.TaskKey]*recorded{}}
			return rec
		},
	})
	if err != nil {
		return p, err
	}
	if err := errors.Join(h.ask(ctx, benchPost(swarm.DefaultTenant, "bench", "")), h.end()); err != nil {
		return p, err
	}
	for _, r := range rec.tasks {
		p = r.taskTemplate()
	}
	return p, nil
}

func (r recorded) taskTemplate() taskTemplate {
	p := taskTemplate{step: r.commit[0], sub: r.sub, row: r.accept.Insert[0]}
	p.step.Events = slices.Concat(r.accept.Events, p.step.Events)
	p.sub.Answer = p.step.Answers[0].Cursor
	i := slices.IndexFunc(p.step.History, func(e swarm.AgentEntry) bool { return e.Agent == "boss" })
	p.entry = p.step.History[i]
	p.step.Consume, p.step.Answers, p.step.Stash = nil, nil, false
	return p
}

// in returns the step and the submission of a task of that name.
func (p taskTemplate) in(principal, task string) (swarm.Mutation, swarm.Submission) {
	step, sub := p.step, p.sub
	key := swarm.TaskKey{InstanceKey: sub.Instance, Task: task}
	key.Instance = "user:" + principal
	step.Task.Key, sub.Instance, sub.Task, sub.Key = key, key.InstanceKey, task, task
	return step, sub
}

// size is what a seeded task holds beside what its one turn left.
type size struct{ events, history, rows int }

// seedBatch is how many records one step of a seeded task brings at most.
const seedBatch = 200

// seed writes a task of that size. Its rows go to the boss; change, if set,
// makes the task and its rows what they should be.
func (p taskTemplate) seed(ctx context.Context, store swarm.TaskLog, principal, task string, more size, change func(*swarm.Task, *swarm.Row)) error {
	step, sub := p.in(principal, task)
	if _, err := store.Accept(ctx, step, sub); err != nil {
		return err
	}
	last := step.Task
	for more != (size{}) {
		next := p.batch(last, &more)
		if change != nil {
			for i := range next.Insert {
				change(&next.Task, &next.Insert[i])
			}
		}
		if err := store.Commit(ctx, next); err != nil {
			return err
		}
		last = next.Task
	}
	return nil
}

// batch is the next step of a seeded task; it takes what it brings off more.
func (p taskTemplate) batch(task swarm.Task, more *size) swarm.Mutation {
	task.History = maps.Clone(task.History)
	var s swarm.Mutation
	event := p.step.Events[0]
	for range take(&more.events) {
		task.Cursor++
		event.Seq = task.Cursor
		s.Events = append(s.Events, event)
	}
	entry := p.entry
	for range take(&more.history) {
		task.History[entry.Agent]++
		entry.Entry.Seq = task.History[entry.Agent]
		s.History = append(s.History, entry)
	}
	for range take(&more.rows) {
		task.Rows++
		row := p.row
		row.N, row.Stash = task.Rows, true
		row.Message.Payload.TaskID = task.Key.Task
		s.Insert = append(s.Insert, row)
	}
	s.Task = task
	return s
}

// take takes the next batch off a number.
func take(left *int) int {
	n := min(*left, seedBatch)
	*left -= n
	return n
}

// waits makes a seeded task run, with rows that a worker's answers left.
func waits(t *swarm.Task, r *swarm.Row) {
	t.State = swarm.StateRunning
	r.Stash, r.Origin = false, swarm.Origin{Door: "agent"}
	r.Message.Type = mail.Response
	r.Message.Payload.Sender = mail.Address{Type: mail.Agent, Name: "worker"}
	r.Tier = mail.Tier(r.Message)
}

// seedAll calls f for each number below n, from many goroutines.
func seedAll(n int, f func(i int) error) error { return spread(seeders, n, f) }

func spread(workers, n int, f func(i int) error) error {
	var wg sync.WaitGroup
	var next atomic.Int64
	errs := make([]error, workers)
	for w := range workers {
		wg.Go(func() {
			for errs[w] == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				errs[w] = f(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// seedTasks writes finished tasks of one turn each.
func (p taskTemplate) seedTasks(ctx context.Context, store swarm.TaskLog, n int, principal func(i int) string) error {
	return seedAll(n, func(i int) error {
		step, sub := p.in(principal(i), fmt.Sprintf("seed-%d", i))
		_, err := store.Accept(ctx, step, sub)
		return err
	})
}

// one names the same principal for every task.
func one(int) string { return "bench" }

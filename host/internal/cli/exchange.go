package cli

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"skep/host/client"
	"skep/spec/mail"
)

// exchange is one post and its answer, with the mail in between.
type exchange struct {
	client *client.Client
	post   client.Post
	// accepted is called when the post is durable.
	accepted func(task string)
	// event is called for each event of the task from the post on.
	event func(client.Event)
	// missed is called when no more events can be had before the answer.
	missed func(error)

	messages []mail.Message
}

// outcome is how an exchange ended.
type outcome struct {
	answer client.Answer
	// record is the task afterwards; it lacks an ID when it could not be had.
	record client.Task
}

// settle is how long an answer and the event that carries it may be apart.
const settle = 2 * time.Second

// run posts, follows the task and returns the answer to this post, which need
// not be the end of the task.
func (x *exchange) run(ctx context.Context) (outcome, error) {
	x.post.Key = client.NewKey()
	receipt, err := x.client.PostAsync(ctx, x.post)
	if err != nil {
		return outcome{}, err
	}
	x.accepted(receipt.Task)
	answer, err := x.follow(ctx, receipt)
	if err != nil {
		return outcome{}, err
	}
	answer.Task = receipt.Task
	record, err := x.client.Task(ctx, receipt.Task)
	if err != nil && ctx.Err() != nil {
		return outcome{}, err
	}
	return outcome{answer, record}, nil
}

// follow waits for the answer, by a repeat of the post that the host attaches
// to the first, and reads the task's events meanwhile.
func (x *exchange) follow(ctx context.Context, receipt client.Receipt) (answer client.Answer, err error) {
	g, ctx := errgroup.WithContext(ctx)
	reading, stop := context.WithCancel(ctx)
	defer stop()
	answered := make(chan struct{})
	g.Go(func() error {
		var err error
		if answer, err = x.client.PostMessage(ctx, x.post); err != nil {
			return err
		}
		close(answered)
		return nil
	})
	g.Go(func() error {
		defer stop()
		return x.read(reading, receipt, answered)
	})
	g.Go(func() error {
		select {
		case <-answered:
			within(settle, reading.Done())
			stop()
		case <-reading.Done():
		}
		return nil
	})
	return answer, g.Wait()
}

// read hands the events on until the one that carries the answer. That some
// cannot be had is no reason to lose the answer.
func (x *exchange) read(ctx context.Context, receipt client.Receipt, answered <-chan struct{}) error {
	for e, err := range x.client.Stream(ctx, receipt.Task, receipt.Cursor) {
		if err != nil {
			if ctx.Err() == nil {
				x.missed(err)
			}
			return nil
		}
		x.keep(e)
		x.event(e)
		if e.Ends() && within(settle, answered) {
			return nil
		}
	}
	return nil
}

// keep collects each message once, however many it is handed to.
func (x *exchange) keep(e client.Event) {
	m, ok := e.Message()
	if !ok || len(x.messages) > 0 && x.messages[len(x.messages)-1].ID == m.ID {
		return
	}
	x.messages = append(x.messages, m)
}

// within waits for an event, but not longer than d.
func within(d time.Duration, happened <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-happened:
		return true
	case <-timer.C:
		return false
	}
}

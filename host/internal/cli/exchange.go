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
	// answered is called when the answer is here, maybe more than once: later
	// failures lose nothing.
	answered func()

	task     string // set once the post is durable
	messages []mail.Message
}

// outcome is how an exchange ended.
type outcome struct {
	answer client.Answer
	// record is the task afterwards; it lacks an ID when it could not be had.
	record client.Task
	// continued: the task had events before this post.
	continued bool
}

// settleTime is how long an answer and the event that carries it may be apart;
// glance is how long mail of others may be held up for that.
const (
	settleTime = 2 * time.Second
	glance     = 200 * time.Millisecond
)

// run posts, follows the task and returns the answer to this post, which need
// not be the end of the task.
func (x *exchange) run(ctx context.Context) (outcome, error) {
	x.post.Key = client.NewKey()
	receipt, err := x.client.PostAsync(ctx, x.post)
	if err != nil {
		return outcome{}, err
	}
	x.task = receipt.Task
	x.accepted(x.task)
	answer, err := x.awaitAnswer(ctx, receipt)
	if err != nil {
		return outcome{}, err
	}
	answer.Task = receipt.Task
	x.answered()
	// The cost is optional: an answer without it still counts.
	ctx, stop := context.WithTimeout(ctx, settleTime)
	defer stop()
	record, err := x.client.Task(ctx, receipt.Task)
	if err != nil {
		record = client.Task{}
	}
	return outcome{answer: answer, record: record, continued: receipt.Cursor > 0}, nil
}

// awaitAnswer waits for the answer, by a repeat of the post that the host attaches
// to the first, and reads the task's events meanwhile. Where the repeat comes
// to nothing, because the host stops just then, the event with the answer does.
func (x *exchange) awaitAnswer(ctx context.Context, receipt client.Receipt) (answer client.Answer, err error) {
	g, ctx := errgroup.WithContext(ctx)
	reading, stop := context.WithCancel(ctx)
	defer stop()
	asking, leave := context.WithCancel(ctx)
	defer leave()
	answered, told := make(chan struct{}), make(chan struct{})
	var last client.Answer // what told has told
	g.Go(func() error {
		var err error
		if answer, err = x.client.PostMessage(asking, x.post); err != nil {
			select {
			case <-told:
				answer = last
			default:
				return err
			}
		}
		close(answered)
		return nil
	})
	g.Go(func() error {
		defer stop()
		x.readEvents(reading, receipt, answered, func(e client.Event) {
			last = x.answerIn(e)
			x.answered()
			close(told)
		})
		return nil
	})
	g.Go(func() error {
		select {
		case <-told:
			waitFor(ctx, settleTime, answered)
			leave()
		case <-answered:
		case <-ctx.Done():
		}
		return nil
	})
	g.Go(func() error {
		select {
		case <-answered:
			waitFor(reading, settleTime, nil)
			stop()
		case <-reading.Done():
		}
		return nil
	})
	return answer, g.Wait()
}

// readEvents hands the events on until the one that carries the answer. Missing
// events do not lose the answer. own gets the event with the answer where that is
// certain: in a task that is not new, a completion may be for an earlier post.
func (x *exchange) readEvents(ctx context.Context, receipt client.Receipt, answered <-chan struct{}, own func(client.Event)) {
	fresh, cursor := receipt.Cursor == 0, receipt.Cursor
	for {
		for e, err := range x.client.Stream(ctx, receipt.Task, cursor) {
			if err != nil {
				if ctx.Err() == nil {
					x.missed(err)
				}
				return
			}
			cursor = max(cursor, e.Cursor)
			x.addMessage(e)
			x.event(e)
			if !e.Ends() {
				continue
			}
			if fresh {
				own(e)
				waitFor(ctx, settleTime, answered)
				return
			}
			if waitFor(ctx, glance, answered) {
				return
			}
		}
		if fresh || waitFor(ctx, settleTime, answered) || ctx.Err() != nil {
			return
		}
	}
}

// answerIn makes an answer of the event that carries it. An agent's completion
// is in the mail before it; the end that the system made is not.
func (x *exchange) answerIn(e client.Event) client.Answer {
	answer := client.Answer{Body: e.Response}
	if e.Name == client.EventError {
		answer.Subject = mail.SubjectTaskTimeout
	} else if n := len(x.messages); n > 0 && x.messages[n-1].Type == mail.BroadcastComplete {
		answer.Subject = x.messages[n-1].Payload.Subject
	}
	return answer
}

// addMessage collects each message once, however many it is handed to.
func (x *exchange) addMessage(e client.Event) {
	m, ok := e.Message()
	if !ok || len(x.messages) > 0 && x.messages[len(x.messages)-1].ID == m.ID {
		return
	}
	x.messages = append(x.messages, m)
}

// waitFor waits for something to happen, but not longer than d, and not when ctx
// ends.
func waitFor(ctx context.Context, d time.Duration, happened <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-happened:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// streamPost answers a post with the events after it, up to its answer. Where the
// task pauses before the post's message is handled, the stream goes on, as a
// waiting post does. The task goes on when the caller closes the connection.
func (c *call) streamPost(receipt *swarm.Receipt) error {
	feed, err := c.h.streams.Follow(c.ctx(), receipt.Task, receipt.Cursor-1)
	if err != nil {
		return err
	}
	defer feed.Close()
	feed.StayOpenDuringPauses()
	s, err := c.openStream(receipt.Task.Task)
	for err == nil {
		var events []swarm.Event
		if events, err = s.next(c.ctx(), feed); err == nil {
			err = c.copyPost(s, receipt, events)
		}
	}
	if errors.Is(err, errAnswered) {
		return nil
	}
	return c.breakOff(s, err)
}

// errAnswered ends the stream of a post.
var errAnswered = errors.New("answered")

// copyPost sends events until one is the answer. It drops the answer to an
// earlier post of the same task: a reader would take it for the end of this
// stream.
func (c *call) copyPost(s *eventStream, receipt *swarm.Receipt, events []swarm.Event) error {
	for _, e := range events {
		if _, ends := e.Answer(); !ends {
			if err := s.addEvent(e); err != nil {
				return err
			}
			continue
		}
		mine, err := c.h.streams.AnswerCursor(c.ctx(), receipt)
		if err != nil {
			return errors.Join(err, s.flush())
		}
		if mine != e.Seq {
			continue
		}
		if err := errors.Join(s.addEvent(e), s.flush()); err != nil {
			return err
		}
		return errAnswered
	}
	return s.flush()
}

// breakOff ends the stream of a post without an answer.
func (c *call) breakOff(s *eventStream, err error) error {
	var gone *writeError
	switch {
	case errors.As(err, &gone), c.ctx().Err() != nil:
		c.w.status = clientGone
		return nil
	case errors.Is(err, swarm.ErrElsewhere), c.isHop && errors.Is(err, swarm.ErrDraining):
		return &swarm.Elsewhere{Task: swarm.TaskKey{Task: s.task, InstanceKey: c.instanceKey()}} // the stream goes on there
	case errors.Is(err, errRevoked):
		c.auditCutOff()
		s.addError(errRevoked.Error())
	case errors.Is(err, swarm.ErrDraining):
		s.addError(mail.SubjectShutdownRequested + " " + shutdownText)
	default:
		c.h.opt.Logger.Error("stream failed", "request_id", c.w.id, "route", c.w.route, "err", err)
		s.addError(internalFault(c.w.id).detail)
	}
	if s.flush() != nil {
		c.w.status = clientGone
	}
	return nil
}

// reconnectAfter is when a reader comes back after its stream has ended.
const reconnectAfter = 2 * time.Second

// followTask is GET /skep/v1/tasks/{id}/events: the log after a cursor, until the
// task ends.
func (c *call) followTask() error {
	after, err := c.readCursor()
	if err != nil {
		return err
	}
	leave, err := c.h.openStreams.acquireStream(c.w.who)
	if err != nil {
		return err
	}
	defer leave()
	key, until, err := c.contentKey()
	if err != nil {
		return err
	}
	ctx, cancel := c.contextUntil(until)
	defer cancel()
	feed, err := c.h.streams.Follow(ctx, key, after)
	if err != nil {
		return err
	}
	defer feed.Close()
	if c.r.Header.Get("Last-Event-ID") != "" && feed.Ended() {
		// A browser reconnects for ever after any other answer
		// (https://html.spec.whatwg.org/multipage/server-sent-events.html#concept-event-stream-reconnect).
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	s, err := c.openStream(key.Task)
	if c.r.Method == http.MethodHead {
		return nil
	}
	s.setRetry(reconnectAfter)
	if err == nil {
		err = s.copyFeed(ctx, feed)
	}
	if errors.Is(err, swarm.ErrElsewhere) || c.isHop && errors.Is(err, swarm.ErrDraining) {
		return &swarm.Elsewhere{Task: key} // the stream goes on there
	}
	c.closeFollow(err)
	return nil
}

// copyFeed sends events until the feed ends or ctx does.
func (s *eventStream) copyFeed(ctx context.Context, feed *swarm.Feed) error {
	for ctx.Err() == nil {
		events, err := s.next(ctx, feed)
		if err == nil {
			err = s.send(events)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// closeFollow ends a stream of a log. No event marks a host that stops or fails:
// the reader reconnects with the last id.
func (c *call) closeFollow(err error) {
	var gone *writeError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, swarm.ErrDraining), errors.Is(err, errLookOver):
	case errors.Is(err, errRevoked):
		c.auditCutOff()
	case errors.As(err, &gone), c.ctx().Err() != nil:
		c.w.status = clientGone
	default:
		c.h.opt.Logger.Error("stream failed", "request_id", c.w.id, "route", c.w.route, "err", err)
		panic(http.ErrAbortHandler)
	}
}

// readCursor returns where the reader left off. Last-Event-ID, which readers send
// when they reconnect, comes before the query.
func (c *call) readCursor() (int64, error) {
	after, err := c.intParam("after", 0, 0, maxCursor)
	if err != nil {
		return 0, err
	}
	if last := c.r.Header.Get("Last-Event-ID"); last != "" {
		if after, err = strconv.ParseInt(last, 10, 64); err != nil || after < 0 {
			return 0, badRequest("Last-Event-ID must be the id of an event of this task")
		}
	}
	return after, nil
}

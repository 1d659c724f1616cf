package rest

import (
	"errors"
	"io"
	"net/http"
	"strconv"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// streamPost answers a post with the events that follow it, up to the one that
// answers it (contract 2.3). Where the task pauses before the post's message is
// handled, it follows on, as a post that is not streamed waits on. A caller that
// leaves takes nothing with it.
func (c *call) streamPost(receipt *swarm.Receipt) error {
	feed, err := c.h.rt.Follow(c.ctx(), receipt.Task, receipt.Cursor-1)
	if err != nil {
		return err
	}
	defer feed.Close()
	feed.OutlastPauses()
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

// copyPost hands events on, until one is the answer. One that answers an
// earlier post to the same task is left out: for every reader it would be the
// end of this one.
func (c *call) copyPost(s *stream, receipt *swarm.Receipt, events []swarm.Event) error {
	for _, e := range events {
		if _, ends := e.Answer(); !ends {
			if err := s.addEvent(e); err != nil {
				return err
			}
			continue
		}
		mine, err := c.h.rt.Answered(c.ctx(), receipt)
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

// breakOff ends the stream of a post that got no answer.
func (c *call) breakOff(s *stream, err error) error {
	var gone *lost
	switch {
	case errors.As(err, &gone), c.ctx().Err() != nil:
		c.w.status = clientGone
		return nil
	case errors.Is(err, errRevoked):
		c.cutOff()
		s.end(errRevoked.Error())
	case errors.Is(err, swarm.ErrDraining):
		s.end(mail.SubjectShutdownRequested + " " + goingDown)
	default:
		c.h.opt.Logger.Error("stream failed", "request_id", c.w.id, "route", c.w.route, "err", err)
		s.end(internal(c.w.id).detail)
	}
	if s.flush() != nil {
		c.w.status = clientGone
	}
	return nil
}

// followTask is GET /skep/v1/tasks/{id}/events: the log after a cursor, and on
// until the task has ended.
func (c *call) followTask() error {
	after, err := c.cursor()
	if err != nil {
		return err
	}
	leave, err := c.h.streams.enter(c.w.who.String())
	if err != nil {
		return err
	}
	defer leave()
	id := c.r.PathValue("task_id")
	feed, err := c.h.rt.Follow(c.ctx(), c.task(id), after)
	if err != nil {
		return err
	}
	defer feed.Close()
	s, err := c.openStream(id)
	if c.r.Method == http.MethodHead {
		return nil
	}
	for err == nil {
		var events []swarm.Event
		if events, err = s.next(c.ctx(), feed); err == nil {
			err = s.send(events)
		}
	}
	c.closeFollow(err)
	return nil
}

// closeFollow ends a stream of a log. There is no event for a host that stops
// or fails: the reader comes again with the last id it has seen.
func (c *call) closeFollow(err error) {
	var gone *lost
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, swarm.ErrDraining):
	case errors.Is(err, errRevoked):
		c.cutOff()
	case errors.As(err, &gone), c.ctx().Err() != nil:
		c.w.status = clientGone
	default:
		c.h.opt.Logger.Error("stream failed", "request_id", c.w.id, "route", c.w.route, "err", err)
		panic(http.ErrAbortHandler)
	}
}

// cursor is where the caller left off: the header that readers of event streams
// send by themselves goes before the address they began with.
func (c *call) cursor() (int64, error) {
	const most = 1<<63 - 1
	if last := c.r.Header.Get("Last-Event-ID"); last != "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n < 0 {
			return 0, badRequest("Last-Event-ID must be the id of an event of this task")
		}
		return n, nil
	}
	return c.number("after", 0, 0, most)
}

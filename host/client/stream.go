package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Stream follows a task's log after a cursor, 0 for all of it. A connection
// that breaks is opened again after the last event that came. The sequence ends
// when the task has ended and all its events were given, and with an error when
// it cannot go on, which is then its last element.
func (c *Client) Stream(ctx context.Context, task string, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		s := &stream{c: c, task: task, after: after, yield: yield, short: -1}
		if err := s.follow(ctx); err != nil && !errors.Is(err, errStopped) {
			yield(Event{}, c.final(err))
		}
	}
}

// errStopped: the reader stopped.
var errStopped = errors.New("stopped by the reader")

// errClosed: the host closed a stream in order.
var errClosed = &lost{errors.New("the host closed the event stream")}

// errSilent: a stream was silent for too long.
var errSilent = &lost{errors.New("the event stream is silent")}

// stream is one reader's way through a task's log.
type stream struct {
	c     *Client
	task  string
	after int64
	yield func(Event, error) bool
	// ended is set while the last event was one that ends a task.
	ended bool
	// short is where the log stopped though the task had ended with more.
	short int64
	tries backoff
}

// follow reads until the task has ended.
func (s *stream) follow(ctx context.Context) error {
	for {
		err := s.read(ctx)
		if errors.Is(err, errStopped) {
			return err // whatever else has ended meanwhile: yield must not be called again
		}
		if errors.Is(err, errClosed) {
			done, ask := s.over(ctx)
			if done || ask != nil {
				return ask
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		least, ok := s.c.passing(err)
		if !ok {
			return err
		}
		if err := s.c.wait(ctx, &s.tries, least, err); err != nil {
			return err
		}
	}
}

// over reports whether a stream that the host closed has come to its end. A host
// also closes streams when it stops, and by the time it answers again the task
// may have ended with events that this reader has not seen.
func (s *stream) over(ctx context.Context) (bool, error) {
	if s.ended {
		return true, nil
	}
	t, err := s.c.Task(ctx, s.task)
	switch {
	case err != nil || t.Running:
		return false, err
	case t.Cursor <= s.after:
		return true, nil
	case s.short == s.after:
		return true, fmt.Errorf("task %s, event %d of %d: %w", s.task, s.after, t.Cursor, errShort)
	}
	s.short = s.after
	return false, nil
}

// read reads one connection to its end and returns how it ended.
func (s *stream) read(ctx context.Context) error { return s.c.readStream(ctx, s.request(), s.give) }

// readStream makes a call whose answer is a stream of events, hands each to give, and returns
// how the connection ended.
func (c *Client) readStream(ctx context.Context, r call, give func(frame) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(c.opt.Idle, func() { cancel(errSilent) })
	defer idle.Stop()

	rsp, err := c.send(ctx, r)
	if err == nil {
		defer func() { _ = rsp.Body.Close() }()
		err = c.readEvents(rsp, r, idle, give)
	}
	if errors.Is(context.Cause(ctx), errSilent) && !errors.Is(err, errStopped) {
		return errSilent
	}
	return err
}

func (s *stream) request() call {
	header := http.Header{"Accept": {"text/event-stream"}}
	if s.after > 0 {
		header.Set("Last-Event-ID", strconv.FormatInt(s.after, 10))
	}
	return call{method: http.MethodGet, path: taskPath(s.task) + "/events", header: header}
}

// readEvents hands on the events of one connection.
func (c *Client) readEvents(rsp *http.Response, r call, idle *time.Timer, give func(frame) error) error {
	if rsp.StatusCode == http.StatusNoContent {
		return errClosed // nothing is left to come
	}
	kind, _, err := mime.ParseMediaType(rsp.Header.Get("Content-Type"))
	if err != nil || kind != "text/event-stream" {
		path, _, _ := strings.Cut(r.path, "?")
		return fmt.Errorf("GET %s: %w: its content type is %q", path, ErrNotMAIL, rsp.Header.Get("Content-Type"))
	}
	frames := newFrames(&lively{rsp.Body, idle, c.opt.Idle}, c.opt.MaxEvent)
	for {
		f, err := frames.next()
		switch {
		case errors.Is(err, io.EOF):
			return errClosed
		case errors.Is(err, ErrTooLarge):
			return err
		case err != nil:
			return &lost{err}
		}
		if err := give(f); err != nil {
			return err
		}
	}
}

// lively puts the alarm off with every byte that comes.
type lively struct {
	io.Reader
	idle *time.Timer
	span time.Duration
}

func (l *lively) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if n > 0 {
		l.idle.Reset(l.span)
	}
	return n, err
}

// give hands one event on, unless it is a ping or was given before.
func (s *stream) give(f frame) error {
	s.tries.reset()
	if f.name == eventPing {
		return nil
	}
	e, err := newEvent(f)
	if err != nil {
		return err
	}
	if e.Cursor > 0 {
		if e.Cursor <= s.after {
			return nil
		}
		s.after, s.ended = e.Cursor, e.Ends()
	}
	if !s.yield(e, nil) {
		return errStopped
	}
	return nil
}

package rest

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"skep/host/internal/swarm"
)

// eventStream writes a task's events to one caller
// (https://html.spec.whatwg.org/multipage/server-sent-events.html). Lines end in
// CRLF: some readers split events by nothing else.
type eventStream struct {
	w         *recorder
	task      string
	pingEvery time.Duration
	now       func() time.Time
	// recheck returns an error when the caller's token is no longer valid. It
	// runs at least once per ping interval.
	recheck   func() error
	checkedAt time.Time
	buf       bytes.Buffer
}

// openStream begins an event stream. Later errors are events.
func (c *call) openStream(task string) (*eventStream, error) {
	head := c.w.Header()
	head.Set("Content-Type", "text/event-stream; charset=utf-8")
	head.Set("Cache-Control", "no-cache")
	if !mustCloseConnection(c.r) {
		head.Set("Connection", "keep-alive")
	}
	head.Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
	s := &eventStream{w: c.w, task: task, pingEvery: c.h.opt.Ping, now: c.h.opt.Now, recheck: c.recheckToken, checkedAt: c.h.opt.Now()}
	return s, s.flush()
}

// add appends one event to the buffer; an id of 0 means none.
func (s *eventStream) add(id int64, name string, data any) {
	text := ""
	if id > 0 {
		s.w.lastEvent, text = id, strconv.FormatInt(id, 10)
	}
	s.addRaw(text, name, encode(data))
}

// addRaw appends one event whose data is JSON without a line break; an empty id means none.
func (s *eventStream) addRaw(id, name string, data []byte) {
	if id != "" {
		s.buf.WriteString("id: " + id + "\r\n")
	}
	s.buf.WriteString("event: " + name + "\r\ndata: ")
	s.buf.Write(data)
	s.buf.WriteString("\r\n\r\n")
}

// setRetry adds the time after which a reader reconnects to the next event.
func (s *eventStream) setRetry(after time.Duration) {
	s.buf.WriteString("retry: " + strconv.FormatInt(after.Milliseconds(), 10) + "\r\n")
}

// maxBuffer is the size in bytes at which the buffer is sent.
const maxBuffer = 64 << 10

func (s *eventStream) addEvent(e swarm.Event) error {
	s.add(e.Seq, e.Name, streamData(s.task, e))
	if s.buf.Len() > maxBuffer {
		return s.flush()
	}
	return nil
}

// send writes the events of a feed.
func (s *eventStream) send(events []swarm.Event) error {
	for _, e := range events {
		if err := s.addEvent(e); err != nil {
			return err
		}
	}
	return s.flush()
}

// addError adds the task_error for a stream that ends early.
func (s *eventStream) addError(text string) {
	s.add(0, "task_error", answerData{formatTime(s.now()), s.task, text})
}

// flush sends the buffer.
func (s *eventStream) flush() error {
	if s.buf.Len() > 0 {
		if _, err := s.w.Write(s.buf.Bytes()); err != nil {
			return &writeError{err}
		}
		s.buf.Reset()
	}
	if err := http.NewResponseController(s.w.ResponseWriter).Flush(); err != nil {
		return &writeError{err}
	}
	return nil
}

// writeError means that the caller cannot be written to.
type writeError struct{ err error }

func (e *writeError) Error() string { return "write to the caller: " + e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// errIdle is the cause when a wait is interrupted for a ping.
var errIdle = errors.New("nothing happened")

// next returns the next events of a feed, and sends pings while there are none.
func (s *eventStream) next(ctx context.Context, feed *swarm.Feed) ([]swarm.Event, error) {
	for {
		quiet, cancel := context.WithTimeoutCause(ctx, s.pingEvery, errIdle)
		events, err := feed.Next(quiet)
		over := quiet.Err() != nil && ctx.Err() == nil
		cancel()
		if revoked := s.recheckCaller(over); revoked != nil {
			return nil, revoked
		}
		if err == nil || !over || errors.Is(err, swarm.ErrDraining) {
			return events, err
		}
		s.add(0, "ping", pingData{formatTime(s.now()), s.task})
		if err := s.flush(); err != nil {
			return nil, err
		}
	}
}

// recheckCaller checks the caller's token when a check is due.
func (s *eventStream) recheckCaller(quiet bool) error {
	now := s.now()
	if !quiet && now.Sub(s.checkedAt) < s.pingEvery {
		return nil
	}
	s.checkedAt = now
	return s.recheck()
}

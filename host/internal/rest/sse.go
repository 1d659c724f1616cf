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

// stream writes a task's events to one caller (contract 2.1). Lines end in
// CRLF, because there are readers that split events by nothing else.
type stream struct {
	w    *recorder
	task string
	ping time.Duration
	now  func() time.Time
	// known says whether the caller may still have it, asked at least once in
	// the time between two pings.
	known func() error
	asked time.Time
	buf   bytes.Buffer
}

// openStream begins an event stream. What goes wrong from here on is an event.
func (c *call) openStream(task string) (*stream, error) {
	head := c.w.Header()
	head.Set("Content-Type", "text/event-stream; charset=utf-8")
	head.Set("Cache-Control", "no-cache")
	if !lastOfItsConnection(c.r) {
		head.Set("Connection", "keep-alive")
	}
	head.Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
	s := &stream{w: c.w, task: task, ping: c.h.opt.Ping, now: c.h.opt.Now, known: c.stillKnown, asked: c.h.opt.Now()}
	return s, s.flush()
}

// add puts one event into the buffer; an id of 0 is none.
func (s *stream) add(id int64, name string, data any) {
	if id > 0 {
		s.buf.WriteString("id: " + strconv.FormatInt(id, 10) + "\r\n")
	}
	s.buf.WriteString("event: " + name + "\r\ndata: ")
	s.buf.Write(encode(data))
	s.buf.WriteString("\r\n\r\n")
}

// maxBuffer is how much of a stream is held before it is sent.
const maxBuffer = 64 << 10

func (s *stream) addEvent(e swarm.Event) error {
	s.add(e.Seq, e.Name, streamData(s.task, e))
	if s.buf.Len() > maxBuffer {
		return s.flush()
	}
	return nil
}

// send hands on what a feed gave.
func (s *stream) send(events []swarm.Event) error {
	for _, e := range events {
		if err := s.addEvent(e); err != nil {
			return err
		}
	}
	return s.flush()
}

// end adds the task_error that tells why a stream stops early.
func (s *stream) end(text string) {
	s.add(0, "task_error", answerData{stamp(s.now()), s.task, text})
}

// flush sends what is in the buffer.
func (s *stream) flush() error {
	if s.buf.Len() > 0 {
		if _, err := s.w.Write(s.buf.Bytes()); err != nil {
			return &lost{err}
		}
		s.buf.Reset()
	}
	if err := http.NewResponseController(s.w.ResponseWriter).Flush(); err != nil {
		return &lost{err}
	}
	return nil
}

// lost says that the caller cannot be written to any more.
type lost struct{ err error }

func (e *lost) Error() string { return "write to the caller: " + e.err.Error() }
func (e *lost) Unwrap() error { return e.err }

// errQuiet is the cause with which waiting for events is cut short for a ping.
var errQuiet = errors.New("nothing happened")

// next returns the next events of a feed, and pings while there are none.
func (s *stream) next(ctx context.Context, feed *swarm.Feed) ([]swarm.Event, error) {
	for {
		quiet, cancel := context.WithTimeoutCause(ctx, s.ping, errQuiet)
		events, err := feed.Next(quiet)
		over := quiet.Err() != nil && ctx.Err() == nil
		cancel()
		if revoked := s.ask(over); revoked != nil {
			return nil, revoked
		}
		if err == nil || !over || errors.Is(err, swarm.ErrDraining) {
			return events, err
		}
		s.add(0, "ping", pingData{stamp(s.now()), s.task})
		if err := s.flush(); err != nil {
			return nil, err
		}
	}
}

// ask makes sure of the caller when it is time to.
func (s *stream) ask(quiet bool) error {
	now := s.now()
	if !quiet && now.Sub(s.asked) < s.ping {
		return nil
	}
	s.asked = now
	return s.known()
}

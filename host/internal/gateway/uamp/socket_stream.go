package uamp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/stream"
)

// socketStream is a stream that is read on a socket.
type socketStream struct {
	s    *socket
	x    gateway.Exchange
	n    note
	name string
	// from is the first delta that the reader wants.
	from int
	// moved has an entry when deltas were acknowledged.
	moved chan struct{}

	// The socket's mutex guards what follows. acked is how many deltas are acknowledged, over
	// is set after the last one was sent.
	window *stream.Window
	acked  int
	over   bool
}

// follow begins to read a stream on the socket.
func (s *socket) follow(c gateway.Caller, name string, x gateway.Exchange, from int) error {
	n, err := readNote(x)
	if err != nil {
		return err
	}
	st := &socketStream{
		s: s, x: x, n: n, name: name, from: from, window: stream.NewWindow(min(n.Window, s.g.MaxWindow), from), acked: from, moved: make(chan struct{}, 1),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch known := s.streams[name]; {
	case known != nil && !known.over:
		return nil // a repeat of its envelope
	case s.active >= maxSocketStreams:
		return &envelope.Fault{Code: envelope.Busy, Text: "64 streams are read on the connection: read this one when another has ended", RetryAfter: busyPause}
	}
	s.streams[name] = st
	s.active++
	s.running.Go(func() {
		st.run()
		s.endStream(st)
	})
	return nil
}

// endStream remembers a stream as ended.
func (s *socket) endStream(st *socketStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.over = true
	s.active--
	s.ended = append(s.ended, st.name)
	if len(s.ended) <= maxEnded {
		return
	}
	if old := s.streams[s.ended[0]]; old != nil && old.over && !slices.Contains(s.ended[1:], old.name) {
		delete(s.streams, old.name)
	}
	s.ended = s.ended[1:]
}

// acknowledgeKnown moves the window of a stream.
func (s *socket) acknowledgeKnown(st *socketStream, seq int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := st.window.Ack(seq); err != nil {
		return err
	}
	st.acked = max(st.acked, seq+1)
	select {
	case st.moved <- struct{}{}:
	default:
	}
	return nil
}

// run writes the deltas of the stream until the last one.
func (st *socketStream) run() {
	ctx, g := st.s.ctx, st.s.g
	pieces, d, err := g.followDeltas(ctx, st.x, st.n, st.name)
	if err != nil {
		st.fail(err)
		return
	}
	defer pieces.Close()
	for {
		p, err := pieces.Next(ctx)
		if errors.Is(err, io.EOF) {
			return
		}
		last := false
		if err == nil && d.isAside(p) {
			st.progress(d.progress(p))
		}
		if err == nil {
			last, err = d.add(ctx, p, func(delta envelope.Delta) error { return st.write(ctx, delta) })
		}
		if err != nil {
			st.fail(err)
		}
		if err != nil || last {
			return
		}
	}
}

// write writes a delta that the reader does not have, when the window is open.
func (st *socketStream) write(ctx context.Context, d envelope.Delta) error {
	if d.Seq < st.from {
		return nil
	}
	for !st.next() {
		select {
		case <-st.moved:
		case <-st.s.lastRead:
			if st.next() { // moved may have come with it
				return st.send(d)
			}
			return errWindow
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return st.send(d)
}

// send writes a delta that is counted.
func (st *socketStream) send(d envelope.Delta) error {
	if !st.s.writeDelta(d) {
		return errWindow // the socket has ended
	}
	return nil
}

// next counts a delta if the window is open.
func (st *socketStream) next() bool {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if !st.window.Open() {
		return false
	}
	st.window.Next()
	return true
}

// fail tells the reader why its stream ends before the last delta, as an envelope: whoever
// reads it again has the same deltas.
func (st *socketStream) fail(err error) {
	if st.s.ctx.Err() != nil || errors.Is(err, errWindow) {
		return
	}
	about := envelope.Envelope{ID: envelope.ID(st.x.ID), From: st.n.From, Stream: st.name}
	st.s.write(st.s.g.signedError(st.s.g.host.String(), about, st.s.g.faultOf(err)))
}

// progress tells progress beside the deltas in an envelope: it has no number.
func (st *socketStream) progress(told map[string]any) {
	body, err := json.Marshal(told)
	if err != nil {
		st.s.write(nil, err)
		return
	}
	st.s.write(st.s.g.sign(envelope.Envelope{
		ID: envelope.NewID(), Time: time.Now(), From: st.s.g.host.String(), To: []string{st.n.From}, Intent: envelope.Progress,
		ReplyTo: envelope.ID(st.x.ID), Stream: st.name, Window: envelope.DefaultWindow, Body: envelope.NewBody("application/json", body),
	}))
}

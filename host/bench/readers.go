package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// readersOfTask is how many read one task's events.
const readersOfTask = 100

// eventReaders is how one server's task is read by many.
type eventReaders interface {
	// begin makes a task that waits and returns how its events are asked for, and
	// how many a reader gets before anything happens.
	begin(cl *http.Client) (stream httpRequest, before int, err error)
	// burst makes the task give about b to each reader and end.
	burst(cl *http.Client, b burst) error
}

// sent is what a audience of readers got, after what came before the burst.
type sent struct {
	frames, bytes int
	// whole is from the burst's cause to the last reader's end, delivery from the
	// first frame of any reader.
	whole, delivery time.Duration
	// memory is what a reader that waits costs its server, in bytes.
	memory float64
}

// compareReaders compares what one task's readers get. The first server sets how many
// events there are, and how large.
func (b *bench) compareReaders(all ...testedServer) {
	var like burst
	sizes := make([]int, len(all))
	wholes, deliveries, memories := make([][]float64, len(all)), make([][]float64, len(all)), make([][]float64, len(all))
	for range b.rounds + 1 {
		for i, c := range all {
			s, err := c.eventReaders(b.ctx, like)
			check(named("readers of "+c.name, err))
			if like.events == 0 {
				like = burst{s.frames / readersOfTask, s.bytes / s.frames}
				break // it was a try, and warmed what it ran on
			}
			if s.frames != like.events*readersOfTask {
				check(fmt.Errorf("%s gave %d events to %d readers, want %d to each", c.name, s.frames, readersOfTask, like.events))
			}
			sizes[i] = s.bytes / s.frames
			wholes[i] = append(wholes[i], float64(s.frames)/s.whole.Seconds())
			deliveries[i] = append(deliveries[i], float64(s.frames)/s.delivery.Seconds())
			memories[i] = append(memories[i], s.memory)
		}
	}
	for i, c := range all[1:] {
		name := fmt.Sprintf("events, 1 task, %d readers", readersOfTask)
		b.report.compare(name+", post to end", median(wholes[0]), rate, c.name, median(wholes[i+1]), none())
		b.report.compare(name+", first to last", median(deliveries[0]), rate, c.name, median(deliveries[i+1]), none())
		b.report.compare("memory of a reader that waits", median(memories[0]), bytesOf, c.name, median(memories[i+1]), none())
	}
	b.report.fact("  events for each reader", float64(like.events), count)
	for i, c := range all {
		b.report.fact("  size of an event, "+c.name, float64(sizes[i]), bytesOf)
	}
}

// eventReaders lets readers wait for a task, and then have its events.
func (c testedServer) eventReaders(ctx context.Context, like burst) (s sent, err error) {
	cl := clientOf(1)
	defer cl.CloseIdleConnections()
	stream, before, err := c.reads.begin(cl)
	if err != nil {
		return s, err
	}
	empty, err := c.on.memory()
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	readers := make(chan reader, readersOfTask)
	ready := make(chan struct{}, readersOfTask)
	for range readersOfTask {
		go func() { readers <- readEvents(ctx, stream, before, ready) }()
	}
	for range readersOfTask {
		select {
		case <-ready:
		case r := <-readers:
			return s, errors.Join(errors.New("a reader ended before the burst"), r.err)
		}
	}
	full, err := c.on.memory()
	if err != nil {
		return s, err
	}
	begun := time.Now()
	if err := c.reads.burst(cl, like); err != nil {
		return s, err
	}
	s, err = together(readers, begun)
	s.memory = (full[0] - empty[0]) / readersOfTask
	return s, err
}

// together waits for all readers, who must have got the same number of events.
func together(readers <-chan reader, begun time.Time) (s sent, err error) {
	var first, last time.Time
	frames := -1
	for range readersOfTask {
		r := <-readers
		switch {
		case r.err != nil:
			return s, r.err
		case frames >= 0 && r.frames != frames:
			return s, fmt.Errorf("one reader got %d events, another %d", frames, r.frames)
		}
		frames = r.frames
		s.frames, s.bytes = s.frames+r.frames, s.bytes+r.bytes
		if first.IsZero() || r.first.Before(first) {
			first = r.first
		}
		if r.last.After(last) {
			last = r.last
		}
	}
	s.whole, s.delivery = last.Sub(begun), last.Sub(first)
	return s, nil
}

// reader is what one reader got after what came before the burst.
type reader struct {
	frames, bytes int
	first, last   time.Time
	err           error
}

// readEvents reads a stream to its end. It reports when all that comes before the
// burst is there.
func readEvents(ctx context.Context, stream httpRequest, before int, ready chan<- struct{}) (r reader) {
	rsp, err := stream.open(ctx, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	if err != nil {
		return reader{err: err}
	}
	defer rsp.Body.Close()
	if before == 0 {
		ready <- struct{}{}
	}
	lines := bufio.NewReaderSize(rsp.Body, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			r.last = time.Now()
			return r
		}
		if err != nil {
			return reader{err: err}
		}
		switch data := bytes.HasPrefix(line, []byte("data:")); {
		case before > 0 && data:
			if before--; before == 0 {
				ready <- struct{}{}
			}
		case before == 0 && (data || r.frames > 0):
			r.count(line, data)
		}
	}
}

func (r *reader) count(line []byte, data bool) {
	r.bytes += len(line)
	if !data {
		return
	}
	if r.frames++; r.frames == 1 {
		r.first = time.Now()
	}
}

package refclient

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Event is one event of a stream: its name, "message" if it has none, and its
// data, the lines of which are joined.
type Event struct{ Name, Data string }

// PostMessageStream is post_message_stream: it gives each event to visit, until
// the stream ends or visit says no more. Events are split by CRLF CRLF and
// nothing else.
func (c *Client) PostMessageStream(ctx context.Context, p Post, visit func(Event) bool) error {
	rsp, err := c.exchange(ctx, c.head(http.MethodPost, "/message", "text/event-stream", Dumps(p.payload(true))))
	if err != nil {
		return err
	}
	defer rsp.Body.Close()
	if rsp.StatusCode >= 400 {
		raw, err := io.ReadAll(rsp.Body)
		_, reason, _ := strings.Cut(rsp.Status, " ")
		if err != nil {
			return err
		}
		return &Error{rsp.StatusCode, reason, string(raw)}
	}
	if kind := rsp.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return fmt.Errorf("the answer is of type %q", kind)
	}
	return split(rsp.Body, visit)
}

// split cuts a stream into events as they arrive. What is left at the end is no
// event.
func split(r io.Reader, visit func(Event) bool) error {
	var held []byte
	piece := make([]byte, 4096)
	for {
		n, err := r.Read(piece)
		held = append(held, piece[:n]...)
		for {
			block, rest, ok := bytes.Cut(held, []byte("\r\n\r\n"))
			if !ok {
				break
			}
			held = rest
			if e, ok := parse(string(block)); ok && !visit(e) {
				return nil
			}
		}
		switch {
		case err == io.EOF && len(held) > 0:
			return fmt.Errorf("the stream ends in the middle of an event: %q", held)
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// parse reads the fields of one event; one that is a comment only is none.
func parse(block string) (e Event, ok bool) {
	e.Name = "message"
	var data []string
	for line := range strings.SplitSeq(block, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "event":
			e.Name, ok = value, true
		case "data":
			data, ok = append(data, value), true
		}
	}
	e.Data = strings.Join(data, "\n")
	return e, ok
}

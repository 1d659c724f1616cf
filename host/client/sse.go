package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// frame is one event of a text/event-stream.
type frame struct {
	name string // "message" when the stream names none
	id   string // of this event alone, empty if it has none
	data []byte
}

// frames reads a text/event-stream: lines that end in CR, LF or both, comments,
// and data over several lines.
type frames struct {
	r   *bufio.Reader
	max int
	// skipLF is set after a CR, whose LF may still be to come: waiting for it
	// would hold the event back.
	skipLF bool
	begun  bool
}

func newFrames(r io.Reader, limit int) *frames {
	return &frames{r: bufio.NewReaderSize(r, 16<<10), max: limit}
}

// next returns the next event that has data. It ends with io.EOF between
// events, and with io.ErrUnexpectedEOF within one.
func (d *frames) next() (frame, error) {
	f := frame{name: "message"}
	size, fields := 0, false
	var data [][]byte
	for {
		line, err := d.line(d.max - size)
		if errors.Is(err, io.EOF) && (fields || len(line) > 0) {
			return frame{}, io.ErrUnexpectedEOF
		}
		if err != nil {
			return frame{}, err
		}
		if len(line) == 0 {
			if len(data) > 0 {
				f.data = bytes.Join(data, []byte("\n"))
				return f, nil
			}
			f, size, fields = frame{name: "message"}, 0, false
			continue
		}
		size += len(line) + 1
		name, value, _ := strings.Cut(string(line), ":")
		value = strings.TrimPrefix(value, " ")
		fields = fields || name != "" // a comment begins with the colon
		switch name {
		case "event":
			f.name = value
		case "data":
			data = append(data, []byte(value))
		case "id":
			if !strings.Contains(value, "\x00") {
				f.id = value
			}
		}
	}
}

// line reads up to the end of a line, which it takes off. At the end of the
// stream it returns what is left with io.EOF.
func (d *frames) line(limit int) ([]byte, error) {
	var line []byte
	for {
		c, err := d.r.ReadByte()
		if err != nil {
			return line, err
		}
		afterCR := d.skipLF
		d.skipLF = false
		switch {
		case c == '\n' && afterCR:
			continue
		case c == '\n':
			return d.first(line), nil
		case c == '\r':
			d.skipLF = true
			return d.first(line), nil
		}
		if len(line) >= limit {
			return nil, fmt.Errorf("%w: an event has more than %d bytes", ErrTooLarge, d.max)
		}
		line = append(line, c)
	}
}

// first takes the byte order mark off the first line.
func (d *frames) first(line []byte) []byte {
	if !d.begun {
		d.begun = true
		line = bytes.TrimPrefix(line, []byte("\uFEFF"))
	}
	return line
}

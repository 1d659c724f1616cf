package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// maxDrained bounds a line that is read to its end only for the line after it, in bytes.
const maxDrained = 64 << 20

// errEndlessLine ends the reading of what is no lines.
var errEndlessLine = fmt.Errorf("a line of stdin has more than %d MiB", maxDrained>>20)

// inputLine is a line without its end. Of a long one it is only the start.
type inputLine struct {
	text []byte
	long bool
}

// lines reads stdin line by line until it ends or ctx does. The start of a line of more
// than so many bytes is handed to tooLong, whose error ends the reading.
func (a *app) lines(ctx context.Context, most int, each func(line []byte), tooLong func(start []byte) error) error {
	r := bufio.NewReader(a.env.Stdin)
	read := make(chan inputLine)
	var failed error
	go func() {
		defer close(read)
		for {
			line, err := readLine(r, most)
			if err != nil {
				if !errors.Is(err, io.EOF) {
					failed = err
				}
				return
			}
			select {
			case read <- line:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case line, more := <-read:
			if !more {
				return failed
			}
			if !line.long {
				each(line.text)
			} else if err := tooLong(line.text); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// readLine returns a line of at most so many bytes, or the start of a longer one.
func readLine(r *bufio.Reader, most int) (line inputLine, err error) {
	for read := 0; ; {
		piece, err := r.ReadSlice('\n')
		read += len(piece)
		if end := len(bytes.TrimRight(piece, "\r\n")); len(line.text)+end > most {
			line.long = true
			line.text = append(line.text, piece[:max(0, most-len(line.text))]...)
		} else if !line.long {
			line.text = append(line.text, piece...)
		}
		switch {
		case read > maxDrained:
			return inputLine{}, errEndlessLine
		case err == nil, errors.Is(err, io.EOF) && len(line.text) > 0:
			line.text = bytes.TrimRight(line.text, "\r\n")
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return inputLine{}, err
		}
	}
}

// lineWriter writes JSON values, one on a line. Its methods may be called at the same time.
type lineWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// write writes one value. Errors are dropped: a client that stops reading also closes stdin.
func (w *lineWriter) write(value json.RawMessage) {
	var line bytes.Buffer
	if json.Compact(&line, value) != nil {
		return
	}
	line.WriteByte('\n')
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.out.Write(line.Bytes())
}

package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
)

// lines reads stdin line by line until it ends or ctx does. A line of more than so many
// bytes is handed to tooLong, whose error ends the reading.
func (a *app) lines(ctx context.Context, most int, each func(line []byte), tooLong func() error) error {
	r := bufio.NewReader(a.env.Stdin)
	read := make(chan []byte) // nil is a line that is too long
	var failed error
	go func() {
		defer close(read)
		for {
			line, long, err := readLine(r, most)
			if err != nil {
				if !errors.Is(err, io.EOF) {
					failed = err
				}
				return
			}
			if long {
				line = nil
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
			if line != nil {
				each(line)
			} else if err := tooLong(); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// readLine returns a line without its end, not nil. Of a line that is too long it keeps
// nothing.
func readLine(r *bufio.Reader, most int) (line []byte, long bool, err error) {
	line = []byte{}
	for {
		piece, err := r.ReadSlice('\n')
		if long = long || len(line)+len(bytes.TrimRight(piece, "\r\n")) > most; long {
			line = line[:0]
		} else {
			line = append(line, piece...)
		}
		switch {
		case err == nil, errors.Is(err, io.EOF) && (long || len(line) > 0):
			return bytes.TrimRight(line, "\r\n"), long, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, err
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

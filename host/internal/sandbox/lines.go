package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"skep/abi"
)

// lines collects what a guest writes to its descriptors 1 and 2, line by line.
type lines struct {
	write   func(fd int, line string)
	partial [3][]byte
	count   int
	dropped int
	last    string // the last line that is not blank
	cry     string // with which Go or Rust began to die
}

// add takes some bytes; full lines go out.
func (l *lines) add(fd int, b []byte) {
	for len(b) > 0 {
		line, rest, complete := bytes.Cut(b, []byte("\n"))
		room := maxLogLine - len(l.partial[fd])
		if len(line) > room {
			line, rest, complete = b[:room], b[room:], true
		}
		l.partial[fd] = append(l.partial[fd], line...)
		if complete {
			l.emit(fd)
		}
		b = rest
	}
}

func (l *lines) emit(fd int) {
	line := strings.ToValidUTF8(string(l.partial[fd]), "\uFFFD")
	l.partial[fd] = l.partial[fd][:0]
	l.listen(line)
	if l.count >= maxLogLines {
		l.dropped += len(line)
		return
	}
	l.count++
	l.write(fd, line)
}

// listen keeps what the guest may have died of.
func (l *lines) listen(line string) {
	switch {
	case strings.TrimSpace(line) == "":
		return
	case strings.HasPrefix(line, "panic: "), strings.HasPrefix(line, "fatal error: "):
		l.cry = line
	case strings.Contains(l.last, "panicked at "):
		l.cry = l.last + " " + line
	}
	l.last = line
}

// words returns what the guest seems to have died of.
func (l *lines) words() string {
	if l.cry != "" {
		return l.cry
	}
	return l.last
}

// flush sends what has no newline yet, and says what was lost.
func (l *lines) flush() {
	for fd := range l.partial {
		if len(l.partial[fd]) > 0 {
			l.emit(fd)
		}
	}
	if l.dropped > 0 {
		l.write(2, fmt.Sprintf("%d more bytes of output after %d lines were dropped", l.dropped, maxLogLines))
		l.dropped = 0
	}
}

// reset forgets everything but the writer.
func (l *lines) reset() { *l = lines{write: l.write} }

// logLine hands a line of the guest to the log op, or to the operator's debug
// log while the module starts.
func (r *run) logLine(fd int, line string) {
	if r.starting || r.turn.Ops == nil {
		r.log.Debug("module output", "module", r.module.digest, "line", line)
		return
	}
	req := abi.LogRequest{Level: "info", Message: line, Fields: map[string]any{"stream": "stdout"}}
	if fd == 2 {
		req.Level, req.Fields["stream"] = "warn", "stderr"
	}
	body, err := json.Marshal(req)
	if err != nil {
		return // strings always encode
	}
	_, _ = r.turn.Ops.Call(r.ctx, abi.OpLog, body) // a refused line is a lost line
}

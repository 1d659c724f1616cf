package wasm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"skep/abi"
	"skep/host/internal/turn"
)

// guestLog collects a guest's output on descriptors 1 and 2, line by line.
type guestLog struct {
	emit      func(fd int, line string)
	partial   [3][]byte
	count     int
	dropped   int
	lastLine  string // the last line that is not blank
	panicLine string // the line with which a panic of Go or Rust began
}

// write adds some bytes and emits the lines that are complete.
func (l *guestLog) write(fd int, b []byte) {
	for len(b) > 0 {
		line, rest, complete := bytes.Cut(b, []byte("\n"))
		room := maxLogLine - len(l.partial[fd])
		if len(line) > room {
			line, rest, complete = b[:room], b[room:], true
		}
		l.partial[fd] = append(l.partial[fd], line...)
		if complete {
			l.endLine(fd)
		}
		b = rest
	}
}

func (l *guestLog) endLine(fd int) {
	line := strings.ToValidUTF8(string(l.partial[fd]), "\uFFFD")
	l.partial[fd] = l.partial[fd][:0]
	l.notePanic(line)
	if l.count >= maxLogLines {
		l.dropped += len(line)
		return
	}
	l.count++
	l.emit(fd, line)
}

// notePanic remembers the last line, and the lines of a panic.
func (l *guestLog) notePanic(line string) {
	switch {
	case strings.TrimSpace(line) == "":
		return
	case strings.HasPrefix(line, "panic: "), strings.HasPrefix(line, "fatal error: "):
		l.panicLine = line
	case strings.Contains(l.lastLine, "panicked at "):
		l.panicLine = l.lastLine + " " + line
	}
	l.lastLine = line
}

// lastWords returns the line of a panic, or else the last line.
func (l *guestLog) lastWords() string {
	if l.panicLine != "" {
		return l.panicLine
	}
	return l.lastLine
}

// flush emits lines without a newline, and the number of bytes that were dropped.
func (l *guestLog) flush() {
	for fd := range l.partial {
		if len(l.partial[fd]) > 0 {
			l.endLine(fd)
		}
	}
	if l.dropped > 0 {
		l.emit(2, fmt.Sprintf("%d more bytes of output after %d lines were dropped", l.dropped, maxLogLines))
		l.dropped = 0
	}
}

// reset empties the log and keeps the writer.
func (l *guestLog) reset() { *l = guestLog{emit: l.emit} }

// logLine hands a line of the guest to the log op, or to the operator's debug
// log while the module starts.
func (r *run) logLine(fd int, line string) {
	if r.starting || r.turn.Ops == nil {
		r.log.Debug("module output", "module", r.module.digest, "line", turn.Output(line))
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
	_, _ = r.turn.Ops.Call(r.ctx, abi.OpLog, body) // a line that is refused is lost
}

package subprocess

import (
	"encoding/json"
	"log/slog"
	"sync"
)

// Roles of the executable for a command, after [Command].
const (
	roleKeep   = "keep"   // between host and command
	roleBecome = "become" // becomes the command
)

// A Line is a command that the operator trusts: it runs as the operator's own
// programs do, and ends with the host.
type Line struct {
	// Name is what messages call it.
	Name string
	// Argv is the program's path and its arguments. Everybody on the machine can
	// read them.
	Argv []string
	// Dir is where it runs, Env all of its environment.
	Dir string
	Env []string
	// Logger gets what it writes to stderr, up to a bound, after Scrub, which may
	// be nil.
	Logger *slog.Logger
	Scrub  func(string) string
}

// order is how a command line travels to its guard.
type order struct {
	Name string   `json:"name"`
	Argv []string `json:"argv"`
	Dir  string   `json:"dir"`
}

func (o order) encode() string {
	raw, _ := json.Marshal(o) // texts always encode
	return string(raw)
}

// maxSecret is how far behind its bound a line is kept, so that a secret that the
// bound would cut is found.
const maxSecret = 4 << 10

// words puts what a command writes for people into the log, and keeps the last
// line. It is safe for concurrent use.
type words struct {
	log   *slog.Logger
	scrub func(string) string

	mu      sync.Mutex
	written int
	part    []byte
	last    string
}

// Write takes what comes, in pieces of any size.
func (w *words) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range b {
		if c != '\n' && len(w.part) < maxLine+maxSecret {
			w.part = append(w.part, c)
		}
		if c == '\n' {
			w.line()
		}
	}
	return len(b), nil
}

func (w *words) line() {
	text := w.clean()
	w.part = w.part[:0]
	if text == "" {
		return
	}
	w.last = text
	if w.written++; w.written <= maxLines {
		w.log.Info("the command says", "line", text)
	}
	if w.written == maxLines {
		w.log.Warn("a command has written its most lines; the others are lost", "lines", maxLines)
	}
}

// clean is the line so far, as it may be shown.
func (w *words) clean() string {
	text := string(w.part)
	if w.scrub != nil {
		text = w.scrub(text)
	}
	return clip(text, maxLine)
}

// lastWords are the last line, for an error.
func (w *words) lastWords() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.last
	if len(w.part) > 0 {
		last = w.clean()
	}
	if last == "" {
		return ""
	}
	return "; its last words: " + last
}

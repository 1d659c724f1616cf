package process

import (
	"encoding/json"
	"log/slog"
	"sync"

	"skep/host/internal/turn"
)

// Roles of the host's executable for a command, after [Command].
const (
	roleGuardCommand = "keep"   // between host and command
	roleExecCommand  = "become" // becomes the command
)

// CommandLine is a command that the operator trusts. It runs with the rights of the host's
// user, and ends with the host.
type CommandLine struct {
	// Name is the name in messages.
	Name string
	// Argv is the program's path and its arguments. Every user of the machine can read
	// them.
	Argv []string
	// Dir is the working directory, Env the whole environment.
	Dir string
	Env []string
	// Logger gets the lines written to stderr, up to maxLines, after Scrub, which may be
	// nil.
	Logger *slog.Logger
	Scrub  func(string) string
}

// commandOrder is the command as passed to its guard.
type commandOrder struct {
	Name string   `json:"name"`
	Argv []string `json:"argv"`
	Dir  string   `json:"dir"`
}

func (o commandOrder) encode() string {
	raw, _ := json.Marshal(o) // strings always encode
	return string(raw)
}

// maxSecret is how many bytes of a line are kept beyond its limit, so that a secret that
// the limit would cut is still found.
const maxSecret = 4 << 10

// words logs the lines of a command's stderr, and keeps the last one. It is safe for
// concurrent use.
type words struct {
	log   *slog.Logger
	scrub func(string) string

	mu      sync.Mutex
	written int
	part    []byte
	last    string
}

// Write accepts pieces of any size.
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
		w.log.Info("the command says", "line", turn.Output(text))
	}
	if w.written == maxLines {
		w.log.Warn("a command has written its most lines; the others are lost", "lines", maxLines)
	}
}

// clean returns the unfinished line for display.
func (w *words) clean() string {
	text := string(w.part)
	if w.scrub != nil {
		text = w.scrub(text)
	}
	return printable(text, maxLine)
}

// lastWords quotes the last line, as the end of an error.
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

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
)

// locked lets several goroutines write whole lines to one stream, and one line
// below them that changes.
type locked struct {
	mu    sync.Mutex
	w     io.Writer
	shown int // columns of the line that changes
}

// Write takes the line that changes away first.
func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.wipe(); err != nil {
		return 0, err
	}
	return l.w.Write(p)
}

// show writes the line that changes, n columns wide; an empty one takes it away.
// The cursor stays at its beginning.
func (l *locked) show(text string, n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.wipe(); err != nil || text == "" {
		return err
	}
	l.shown = n
	_, err := io.WriteString(l.w, text+"\r")
	return err
}

// wipe is called with mu held.
func (l *locked) wipe() error {
	if l.shown == 0 {
		return nil
	}
	_, err := io.WriteString(l.w, strings.Repeat(" ", l.shown)+"\r")
	l.shown = 0
	return err
}

// json reports whether data is wanted as JSON.
func (a *app) json() bool { return a.common.output == outputJSON }

// printf writes data.
func (a *app) printf(format string, args ...any) error {
	if _, err := fmt.Fprintf(a.env.Stdout, format, args...); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return nil
}

// print writes data that others have chosen: escaped to a terminal, as it is to
// everything else.
func (a *app) print(text string) error {
	if a.env.StdoutTerminal {
		text = printable(text)
	}
	return a.printf("%s\n", text)
}

// printJSON writes a value as data.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.env.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return nil
}

// notef writes a line to stderr.
func (a *app) notef(format string, args ...any) {
	fmt.Fprintf(a.env.Stderr, format+"\n", args...) // nobody is left to tell of a failure
}

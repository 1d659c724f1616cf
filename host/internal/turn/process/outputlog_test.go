package process

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"unicode"
)

// FuzzLines writes what a process may write: the log gets lines of printable text,
// so many and so long, and the last words are one of them.
func FuzzLines(f *testing.F) {
	f.Add([]byte("one\ntwo\n\nthree"), 2)
	f.Add([]byte("\x1b[2J\xff\xfe\r\n\u2028"), 1)
	f.Add(bytes.Repeat([]byte("x"), 3*maxLine), 7)
	f.Add(bytes.Repeat([]byte("x\n"), maxLines+5), 4096)
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		var log bytes.Buffer
		l := &outputLog{log: slog.New(slog.NewJSONHandler(&log, nil))}
		for len(text) > 0 {
			n := min(max(size, 1), len(text))
			if wrote, err := l.Write(text[:n]); wrote != n || err != nil {
				t.Fatal(wrote, err)
			}
			text = text[n:]
		}
		written := 0
		for line := range strings.Lines(log.String()) {
			var e struct{ Line string }
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			written++
			checkLine(t, e.Line)
		}
		if written > maxLines+1 {
			t.Errorf("%d lines", written)
		}
		checkLine(t, strings.TrimPrefix(l.lastWords(), "; its last words: "))
	})
}

// checkLine wants a text that can be shown. Bytes that are no text have become
// characters of three.
func checkLine(t *testing.T, line string) {
	t.Helper()
	bad := func(r rune) bool { return !unicode.IsPrint(r) }
	if strings.ContainsFunc(line, bad) || len(line) > 3*maxLine {
		t.Errorf("%d bytes: %.100q", len(line), line)
	}
}

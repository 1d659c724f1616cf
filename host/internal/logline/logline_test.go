package logline_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"unicode"

	"skep/host/internal/logline"
)

// hostile has each kind of character that a terminal or a reader of lines obeys.
const hostile = "a\r\nb\tc\x1b[2J\x00\x7f\u0085\u009b2J\u2028\u2029\u202e\u2066é😀�"

// A record is one line without a character that a terminal obeys, and means the same.
func TestEscape(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(logline.Writer{To: &out}, nil)).Info(hostile, hostile, hostile)
	line := strings.TrimSuffix(out.String(), "\n")
	if i := strings.IndexFunc(line, func(r rune) bool {
		return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
	}); i >= 0 {
		t.Errorf("%q at %d", line, i)
	}
	var got map[string]string
	if err := json.Unmarshal([]byte(line), &got); err != nil || got["msg"] != hostile || got[hostile] != hostile {
		t.Errorf("%q: %v, %v", line, got, err)
	}
	for _, plain := range []string{"", "plain", "é😀", "\xff"} {
		if got := string(logline.Escape([]byte(plain))); got != plain {
			t.Errorf("%q became %q", plain, got)
		}
	}
}

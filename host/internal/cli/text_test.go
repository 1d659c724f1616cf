package cli

import (
	"testing"
	"time"
	"unicode/utf8"

	"skep/host/internal/spelling"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain ä ☂": "plain ä ☂", "a\nb\tc": "a\nb\tc", "\x1b[2J": `\x1b[2J`, "a\rb": `a\rb`,
		"\x7f\u009b": `\x7f\u009b`, "a\xffb": `a\xffb`, "\uFFFD": "\uFFFD", "\u202Eabc\u2066": `\u202eabc\u2066`,
		"a\u2028b\u2029\u0085": `a\u2028b\u2029\u0085`, "'\"\\": "'\"\\", "👩‍🌾 א": "👩‍🌾 א", "\x00": `\x00`,
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestInLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"a b": "a b", "a\nb\tc": `a\nb\tc`, "\x1b]0;x\a": `\x1b]0;x\a`} {
		if got := inLine(in); got != want {
			t.Errorf("inLine(%q) = %q, want %q", in, got, want)
		}
		if got := inLine(inLine(in)); got != want {
			t.Errorf("%q is escaped twice: %q", in, got)
		}
	}
}

func TestBelow(t *testing.T) {
	t.Parallel()
	if got := indentBelow("a\nb\nc", 2); got != "a\n  b\n  c" {
		t.Errorf("below = %q", got)
	}
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", " a ": "a", "a\tb": "a b", "a\nb": "a (1 more line)", "a\nb\nc\n": "a (2 more lines)", "\n\na": "a",
	} {
		if got := oneLine(in); got != want {
			t.Errorf("oneLine(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestClipAndPad(t *testing.T) {
	t.Parallel()
	if got := clip("äöüß", 3); got != "äö…" {
		t.Errorf("clip = %q", got)
	}
	if got := clip("äöü", 3); got != "äöü" {
		t.Errorf("clip = %q", got)
	}
	if got := pad("äö", 4); utf8.RuneCountInString(got) != 4 {
		t.Errorf("pad = %q", got)
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for in, want := range map[time.Duration]string{
		0: "0 µs", 999 * time.Microsecond: "999 µs", 1500 * time.Microsecond: "1.5 ms", 123 * time.Millisecond: "123 ms",
		99 * time.Millisecond: "99 ms", 2 * time.Second: "2 s", 99999 * time.Millisecond: "100 s", 200 * time.Second: "3m20s",
	} {
		if got := span(in); got != want {
			t.Errorf("span(%v) = %q, want %q", in, got, want)
		}
	}
	for in, want := range map[uint64]string{
		0: "0", 999: "999", 1000: "1k", 1234: "1.23k", 999_499: "999k", 999_500: "1M", 61_700_000: "61.7M", 1<<64 - 1: "1.84e+04P",
	} {
		if got := quantity(in); got != want {
			t.Errorf("quantity(%d) = %q, want %q", in, got, want)
		}
	}
	for in, want := range map[time.Duration]string{-time.Second: "0.000", 1234 * time.Millisecond: "1.234", 200 * time.Second: "3m20s"} {
		if got := since(in); got != want {
			t.Errorf("since(%v) = %q, want %q", in, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"timout", "timeout", 1}, {"task", "tsak", 2}, {"data", "url", 4}} {
		if got := spelling.Distance(tc.a, tc.b, 2); got != tc.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}

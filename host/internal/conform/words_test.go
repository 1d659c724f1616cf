package conform

import (
	"strings"
	"testing"

	"skep/spec/conformance"
)

func TestOtherWords(t *testing.T) {
	t.Parallel()
	said := func(output string, requests ...string) (o Outcome) {
		o.Output = []byte(output)
		for _, r := range requests {
			o.Ops = append(o.Ops, conformance.Op{Number: 10, Request: r})
		}
		return o
	}
	other := func(o Outcome, number int32) Outcome { o.Ops[0].Number = number; return o }
	long := strings.Repeat("ä", 300)
	tests := []struct {
		name         string
		usual, other Outcome
		want         string
	}{
		{"the same", said("o", "a"), said("o", "a"), ""},
		{"a request", said("o", "a", "b"), said("o", "a", "c"), "op 2 (mail) says something else:\nusually mail b\nthen    mail c"},
		{"another op", said("", "a"), other(said("", "a"), 1), "op 1 says something else:\nusually mail a\nthen    log a"},
		{"one more", said(""), said("", "a"), "op 1 says something else:\nusually no such op\nthen    mail a"},
		{"the output", said(""), said("o"), "the turn result says something else:\nusually nothing\nthen    o"},
		{"where they differ", said(long + "1"), said(long + "2"), "the turn result says something else:\n" +
			"usually …" + strings.Repeat("ä", 20) + "1\nthen    …" + strings.Repeat("ä", 20) + "2"},
		{"cut off", said("1" + long), said("2" + long), "the turn result says something else:\n" +
			"usually 1" + strings.Repeat("ä", 79) + "…\nthen    2" + strings.Repeat("ä", 79) + "…"},
		{"no text", said(strings.Repeat("\x80", 300)), said(""), "the turn result says something else:\nusually …\nthen    nothing"},
	}
	for _, tt := range tests {
		if got := otherWords(tt.usual, tt.other); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

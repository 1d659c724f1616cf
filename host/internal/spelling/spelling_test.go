package spelling

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	options := []string{"memory", "turn", "cpu", "fuel", "output", "comm_targets", "key", "keys"}
	for word, want := range map[string]string{
		"memmory": "memory", "MEMORY": "memory", "trun": "turn", "cp": "cpu", "comm_target": "comm_targets",
		"comtargets": "comm_targets", "kee": "key", "keys": "key", "x": "", "": "", "something else": "", "ouptut": "output",
	} {
		if got := Nearest(word, options); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
	if got := Nearest(strings.Repeat("a", 1<<20), []string{strings.Repeat("a", 1<<20) + "b"}); got != "" {
		t.Error("a word beyond all names was compared")
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"", "ab", 2}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "axc", 1}, {"kitten", "sitting", 3}} {
		if got := Distance(tt.a, tt.b, 1); got != tt.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

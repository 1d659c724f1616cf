package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	t.Parallel()
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	tests := []struct {
		name   string
		values []float64
		p      int
		want   float64
	}{
		{"of nothing", nil, 50, 0},
		{"of one", []float64{7}, 99, 7},
		{"the middle of three", []float64{3, 1, 2}, 50, 2},
		{"the lower middle of four", []float64{4, 3, 2, 1}, 50, 2},
		{"the 99th of a hundred", hundred, 99, 99},
		{"the largest", hundred, 100, 100},
		{"the smallest", hundred, 0, 1},
	}
	for _, tt := range tests {
		if got := percentile(tt.values, tt.p); got != tt.want {
			t.Errorf("%s: percentile %d is %v, want %v", tt.name, tt.p, got, tt.want)
		}
	}
	if hundred[0] != 100 {
		t.Error("the values were changed")
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		bound       *bound
		value, peer float64
		met         bool
	}{
		{"at most, kept", atMost(1.3), 1.3, 1, true},
		{"at most, missed", atMost(1.3), 1.31, 1, false},
		{"at least, kept", atLeast(0.6), 0.6, 1, true},
		{"at least, missed", atLeast(0.6), 0.59, 1, false},
		{"share, kept", share(20), 1, 20, true},
		{"share, missed", share(20), 1, 19, false},
		{"within, kept", within(time.Millisecond), 0.0015, 0.001, true},
		{"within, missed", within(time.Millisecond), 0.0021, 0.001, false},
		{"below, kept", below(10 * time.Millisecond), 0.009, 0, true},
		{"below, missed", below(10 * time.Millisecond), 0.010, 0, false},
	}
	for _, tt := range tests {
		w := newRow(tt.name, tt.value, seconds, "peer", tt.peer, tt.bound)
		if w.Met == nil || *w.Met != tt.met {
			t.Errorf("%s: %v against %v: met %v, want %v", tt.name, tt.value, tt.peer, w.Met, tt.met)
		}
	}
	if w := newRow("free", 3, seconds, "peer", 2, none()); w.Met != nil || w.Ratio != 1.5 {
		t.Errorf("a row without a target: %+v", w)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	fill := func(f format) string {
		var out bytes.Buffer
		r, err := newReport(&out, f, 3, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		r.begin(part{name: "turns", title: "Turns"})
		r.compare("good", 0.002, seconds, "peer", 0.002, atMost(1))
		r.compare("bad", 3<<20, bytesOf, "peer", 1<<20, share(20))
		r.fact("alone", 12, count)
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	text := fill(textFormat)
	for _, want := range []string{"2 ms", "1x of", "at most 1x: met", "3072.0 KiB", "at most 1/20: MISSED", "1 targets met, 1 missed", "missed: turns bad"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	table := fill(markdownFormat)
	for _, want := range []string{"## Turns", "| good | 2 ms | 1x | 2 ms, peer | at most 1x: met |", "| bad | 3072.0 KiB | 3x | 1024.0 KiB, peer | at most 1/20: MISSED |", "| alone | 12 |  |  |  |", "1 targets met, 1 missed"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
	var r report
	if err := json.Unmarshal([]byte(fill(jsonFormat)), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 3 || *r.Rows[1].Met || r.Rows[1].Part != "turns" || r.Rows[2].Met != nil || r.Machine == "" {
		t.Errorf("as JSON: %+v", r)
	}
	if _, err := newReport(&bytes.Buffer{}, "xml", 1, 1); err == nil {
		t.Error("xml is a format")
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{2.5: "2.5 s", 0.0301: "30.1 ms", -0.0005: "-500 µs", 3.2e-7: "320 ns", 0: "0 ns"} {
		if got := duration(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}

func TestChosen(t *testing.T) {
	t.Parallel()
	if list, err := chosen("posts, kill"); err != nil || len(list) != 2 || list[0].name != "kill" {
		t.Errorf("posts, kill: %v, %v", list, err)
	}
	if list, err := chosen(""); err != nil || len(list) != len(parts) {
		t.Errorf("everything: %v, %v", list, err)
	}
	if _, err := chosen("kill,soup"); err == nil || !strings.Contains(err.Error(), "soup") {
		t.Errorf("soup: %v", err)
	}
}

func TestStatusField(t *testing.T) {
	t.Parallel()
	text := []byte("Name:\tbench\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n")
	if got, err := statusField(text, "VmRSS"); err != nil || got != 1<<20 {
		t.Errorf("VmRSS is %v, %v", got, err)
	}
	if _, err := statusField(text, "VmSwap"); err == nil {
		t.Error("VmSwap is there")
	}
}

func TestRates(t *testing.T) {
	t.Parallel()
	n := 0
	b := &bench{ctx: t.Context(), rounds: 3, span: time.Second}
	got, err := b.rates(
		subject{"grows", func(time.Duration) (int, time.Duration, error) { n++; return n * 10, time.Second, nil }},
		subject{"stays", func(span time.Duration) (int, time.Duration, error) { return 5, span / 2, nil }},
	)
	if err != nil || got[0] != 20 || got[1] != 10 {
		t.Errorf("rates %v, %v", got, err)
	}
}

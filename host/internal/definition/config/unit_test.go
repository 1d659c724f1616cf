package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestParseSize(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		want int64
		bad  bool
	}{
		{in: "0", want: 0},
		{in: "65536", want: 65536},
		{in: "1B", want: 1},
		{in: "64MiB", want: 64 << 20},
		{in: "64 mib", want: 64 << 20},
		{in: " 512KB ", want: 512_000},
		{in: "1.5GiB", want: 3 << 29},
		{in: "2TiB", want: 2 << 40},
		{in: "3MB", want: 3e6},
		{in: "4GB", want: 4e9},
		{in: "1TB", want: 1e12},
		{in: "8192TiB", want: 1 << 53},
		{in: "8193TiB", bad: true},
		{in: "", bad: true},
		{in: "MiB", bad: true},
		{in: "-1MiB", bad: true},
		{in: "1.2.3KiB", bad: true},
		{in: ".", bad: true},
		{in: "0.3B", bad: true},
		{in: "1e3", bad: true},
		{in: "0x10", bad: true},
		{in: "infMiB", bad: true},
		{in: "64M", bad: true},
		{in: "64MiBs", bad: true},
		{in: strings.Repeat("9", 400), bad: true},
	} {
		got, err := parseSize(tt.in)
		if (err != nil) != tt.bad || got != tt.want {
			t.Errorf("parseSize(%.20q) = %d, %v, want %d", tt.in, got, err, tt.want)
		}
	}
}

func TestSizeString(t *testing.T) {
	t.Parallel()
	for size, want := range map[Size]string{
		0: "0", 1: "1", 1023: "1023", KiB: "1KiB", 1536: "1536", 64 * MiB: "64MiB", 3 * GiB / 2: "1536MiB", GiB: "1GiB", 2 * TiB: "2TiB", 1e15: "1000TB",
	} {
		if got := size.String(); got != want {
			t.Errorf("Size(%d) = %s, want %s", int64(size), got, want)
		}
		if back, err := parseSize(want); err != nil || Size(back) != size {
			t.Errorf("parseSize(%s) = %d, %v", want, back, err)
		}
	}
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"7d": 168 * time.Hour, " 1d12h ": 36 * time.Hour, "0d": 0, "90s": 90 * time.Second, "-1h": -time.Hour,
	} {
		if got, err := parseDuration(text); err != nil || got != int64(want) {
			t.Errorf("parseDuration(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"d", "1.5d", "-1d", "1d-1h", "1h1d", "1d1d", "99999d", "65535d2562047h"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("parseDuration(%q) = %d", text, got)
		}
	}
}

func TestShortDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", time.Millisecond: "1ms", 10 * time.Second: "10s", 10 * time.Minute: "10m", time.Hour: "1h",
		90 * time.Minute: "1h30m", time.Hour + 10*time.Second: "1h0m10s", 20 * time.Hour: "20h", 100 * time.Minute: "1h40m",
	} {
		if got := shortDuration(d); got != want {
			t.Errorf("shortDuration(%d) = %s, want %s", d, got, want)
		}
		if back, err := parseDuration(want); err != nil || back != int64(d) {
			t.Errorf("parseDuration(%s) = %d, %v", want, back, err)
		}
	}
}

func TestSecretIsNotPrinted(t *testing.T) {
	t.Parallel()
	s := struct{ Key Secret }{"the-text"}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "secret", s.Key)
	encoded, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	out := []string{log.String(), string(encoded)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		out = append(out, fmt.Sprintf(verb, s), fmt.Sprintf(verb, s.Key))
	}
	for _, text := range out {
		if strings.Contains(text, "the-text") || strings.Contains(text, fmt.Sprintf("%x", "the-text")) {
			t.Errorf("printed as %s", text)
		}
	}
	if s.Key.Reveal() != "the-text" {
		t.Error("Reveal does not give the text")
	}
}

func TestFaultEncoding(t *testing.T) {
	t.Parallel()
	f := Fault{File: "a.toml", Line: 3, Col: 4, Path: "a.b", Message: "m", Suggestion: "s"}
	if got, want := f.String(), `a.toml:3:4: m (did you mean "s"?)`; got != want {
		t.Errorf("String = %s, want %s", got, want)
	}
	got, err := json.Marshal(f)
	const want = `{"file":"a.toml","line":3,"column":4,"path":"a.b","message":"m","suggestion":"s"}`
	if err != nil || string(got) != want {
		t.Errorf("JSON = %s, %v, want %s", got, err, want)
	}
}

func TestFaultsAreSortedOnce(t *testing.T) {
	t.Parallel()
	a, b, c := Fault{Line: 2, Message: "a"}, Fault{Line: 1, Col: 9, Message: "b"}, Fault{Line: 2, Message: "c"}
	if got := (Faults{a, c, b, a}).sorted(); len(got) != 3 || got[0] != b || got[1] != a || got[2] != c {
		t.Errorf("sorted = %v", got)
	}
}

func TestLoopback(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:1": true, "localhost:1": true, "[::1]:1": true, "[::ffff:127.0.0.1]:1": true,
		":1": false, "0.0.0.0:1": false, "[::]:1": false, "10.0.0.1:1": false, "example.com:1": false, "": false,
	} {
		if got := isLoopback(address); got != want {
			t.Errorf("isLoopback(%s) = %v", address, got)
		}
	}
}

package mail_test

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"skep/spec/mail"
)

func TestValidTaskID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"test-task-id": true, uuid1: true, "a b": true, "ünï ⚓ 漢": true, strings.Repeat("漢", 256): true,
		"": false, strings.Repeat("漢", 257): false, "a\x00": false, "a\n": false, "a\u2028": false,
		"a\u00a0": false, "a\u202e": false, "\xff": false, "a\ufeff": false,
	} {
		if got := mail.ValidTaskID(id); got != want {
			t.Errorf("ValidTaskID(%q) = %v", id, got)
		}
	}
}

func TestNewUUID(t *testing.T) {
	t.Parallel()
	var bits [16]byte
	if _, err := hex.Decode(bits[:], []byte("00112233445566778899aabbccddeeff")); err != nil {
		t.Fatal(err)
	}
	if got, want := mail.NewUUID(bits), "00112233-4455-4677-8899-aabbccddeeff"; got != want {
		t.Errorf("NewUUID = %s, want %s", got, want)
	}
	if got, want := mail.NewUUID([16]byte{}), "00000000-0000-4000-8000-000000000000"; got != want {
		t.Errorf("NewUUID = %s, want %s", got, want)
	}
}

func TestFormatTime(t *testing.T) {
	t.Parallel()
	east := time.FixedZone("", 3600)
	for _, tc := range []struct {
		in   time.Time
		want string
	}{
		{time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC), "2026-03-01T09:30:00.000000+00:00"},
		{time.Date(2026, 3, 1, 0, 30, 0, 123456999, east), "2026-02-28T23:30:00.123456+00:00"},
		{time.Time{}, "0001-01-01T00:00:00.000000+00:00"},
	} {
		got := mail.FormatTime(tc.in)
		if got != tc.want {
			t.Errorf("FormatTime(%v) = %s, want %s", tc.in, got, tc.want)
		}
		back, err := mail.ParseTime(got)
		if err != nil || !back.Equal(tc.in.Truncate(time.Microsecond)) {
			t.Errorf("ParseTime(%s) = %v, %v", got, back, err)
		}
	}
}

// TestParseTime: the refusals are in the vectors; here are the values.
func TestParseTime(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Time{
		"2026-03-01T09:30:00Z":                   time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC),
		"2026-03-01T09:30:00.1234567899+00:00":   time.Date(2026, 3, 1, 9, 30, 0, 123456789, time.UTC),
		"2026-01-01T00:30:00.5+05:30":            time.Date(2025, 12, 31, 19, 0, 0, 5e8, time.UTC),
		"2024-02-29T23:59:59-00:01":              time.Date(2024, 3, 1, 0, 0, 59, 0, time.UTC),
		"2000-02-29T00:00:00Z":                   time.Date(2000, 2, 29, 0, 0, 0, 0, time.UTC),
		"0000-01-01T00:00:00-00:00":              time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC),
		"9999-12-31T23:59:59.999999999999-23:59": time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC).Add(23*time.Hour + 59*time.Minute),
	} {
		got, err := mail.ParseTime(in)
		if err != nil || !got.Equal(want) || got.Location() != time.UTC {
			t.Errorf("ParseTime(%s) = %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "Z", "1900-02-29T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00.1", "2026-01-01T00:00:00+1:00", "2026-01-01T00:00:00+01:60", "2026-01-01T00:00:00ZZ", "+026-01-01T00:00:00Z", "2026-01-01T00:00:00\u22120100"} {
		if got, err := mail.ParseTime(in); err == nil {
			t.Errorf("ParseTime(%q) = %v, want an error", in, got)
		}
	}
}

// FuzzParseTime holds ParseTime against the standard library, which takes a few
// spellings more.
func FuzzParseTime(f *testing.F) {
	for _, s := range []string{noon, "2026-03-01T09:30:00Z", "2024-02-29T00:00:00.1-11:59", "2026-02-30T00:00:00Z"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := mail.ParseTime(s)
		want, stdErr := time.Parse(time.RFC3339Nano, s)
		if err == nil && (stdErr != nil || !got.Equal(want)) {
			t.Fatalf("ParseTime(%q) = %v, time.Parse = %v, %v", s, got, want, stdErr)
		}
		if err != nil && stdErr == nil && len(s) > 10 && !strings.Contains(s, ",") && s[10] == 'T' && plainShape(s) {
			t.Fatalf("ParseTime(%q) = %v, time.Parse = %v", s, err, want)
		}
	})
}

// plainShape reports whether s has two digits wherever RFC 3339 wants two, and an
// hour of the offset below 24; time.Parse is lax there.
func plainShape(s string) bool {
	if i := strings.LastIndexAny(s, "+-"); i > 10 {
		return len(s)-i == 6 && s[i+1:i+3] < "24" && s[i+4:] < "60" && len(s) > 19 && s[13] == ':'
	}
	return len(s) > 19 && s[13] == ':' && s[len(s)-1] == 'Z'
}

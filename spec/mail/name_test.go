package mail_test

import (
	"strings"
	"testing"

	"skep/spec/mail"
)

// TestCheckAgentName covers.
func TestCheckAgentName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"calc": true, "Größe-2": true, "a.b/c+d%": true, "ALL": true, "all.": true,
		strings.Repeat("é", 128): true, strings.Repeat("é", 129): false,
		"all": false, "": false, "a b": false, "a\tb": false, "a\u00a0b": false, "a\n": false,
		"a@b": false, "a:b": false, "\x00": false, "\xff": false, "a\u202eb": false, "a\u200bb": false,
	} {
		if err := mail.CheckAgentName(name); (err == nil) != want {
			t.Errorf("CheckAgentName(%q) = %v, want ok = %v", name, err, want)
		}
	}
}

// TestParseAddr covers R-013, S-02 and S-05.
func TestParseAddr(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in, name, swarm string
		ok              bool
	}{
		{"calc", "calc", "", true},
		{"all", "all", "", true},
		{"calc@depot", "calc", "depot", true},
		{"all@depot", "all", "depot", true},
		{"a:b@uamp+w.example", "a:b", "uamp+w.example", true},
		{strings.Repeat("x", 512) + "@d", strings.Repeat("x", 512), "d", true},
		{strings.Repeat("x", 513) + "@d", "", "", false},
		{strings.Repeat("x", 129), "", "", false},
		{"", "", "", false},
		{"@", "", "", false},
		{"@depot", "", "", false},
		{"calc@", "", "", false},
		{"a@b@c", "", "", false},
		{"a:b", "", "", false},
		{"a@b:c", "", "", false},
		{"a b@c", "", "", false},
		{"a@b c", "", "", false},
	} {
		name, swarm, err := mail.ParseAddr(tc.in)
		if name != tc.name || swarm != tc.swarm || (err == nil) != tc.ok {
			t.Errorf("ParseAddr(%q) = %q, %q, %v; want %q, %q, ok = %v", tc.in, name, swarm, err, tc.name, tc.swarm, tc.ok)
		}
		if err == nil && mail.FormatAddr(name, swarm) != tc.in {
			t.Errorf("FormatAddr(%q, %q) = %q", name, swarm, mail.FormatAddr(name, swarm))
		}
	}
}

func FuzzParseAddr(f *testing.F) {
	for _, s := range []string{"calc", "calc@depot", "a:b@c", "@", "a@b@c", "\xff", "a\u2028"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, swarm, err := mail.ParseAddr(s)
		if err != nil {
			if name != "" || swarm != "" {
				t.Fatalf("ParseAddr(%q) = %q, %q beside error %v", s, name, swarm, err)
			}
			return
		}
		if got := mail.FormatAddr(name, swarm); got != s {
			t.Fatalf("FormatAddr(ParseAddr(%q)) = %q", s, got)
		}
		if strings.ContainsAny(name+swarm, "@ \t\n") || strings.Contains(swarm, ":") || name == "" {
			t.Fatalf("ParseAddr(%q) = %q, %q", s, name, swarm)
		}
	})
}

func TestReserved(t *testing.T) {
	t.Parallel()
	for subject, want := range map[string]bool{
		mail.SubjectTaskComplete: true, "::": true, "::x": true, ":x": false, " ::x": false, "": false, "Re: ::x": false,
	} {
		if got := mail.Reserved(subject); got != want {
			t.Errorf("Reserved(%q) = %v", subject, got)
		}
	}
	if !mail.ReservedTool("help") || !mail.ReservedTool("discover_swarms") || mail.ReservedTool("calc") {
		t.Error("ReservedTool is wrong about help, discover_swarms or calc")
	}
}

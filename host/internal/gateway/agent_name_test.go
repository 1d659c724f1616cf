package gateway

import (
	"strings"
	"testing"

	"skep/spec/mail"
)

// FuzzAgentName (G-010, G-011, G-012): an id becomes a name of an agent and comes back.
func FuzzAgentName(f *testing.F) {
	for _, s := range []string{"calc", "did:web:a.example:agents:x", "a@b", "100%", "a b\n", "é日本", "\xff\xfe", "\ufffd", "%41", strings.Repeat("x", 600)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		name, err := AgentName(id)
		if err != nil {
			return // too long, or empty
		}
		if parsed, realm, err := mail.ParseAddr(name + "@r"); err != nil || parsed != name || realm != "r" {
			t.Fatalf("%q became %q, which is read as %q at %q: %v", id, name, parsed, realm, err)
		}
		if back, err := ForeignID(name); err != nil || back != id {
			t.Fatalf("%q became %q and came back as %q: %v", id, name, back, err)
		}
	})
}

// TestMalformedNames: what no id has become is refused (G-010, G-011).
func TestMalformedNames(t *testing.T) {
	for _, name := range []string{"%", "%4", "a%zz"} {
		if id, err := ForeignID(name); err == nil {
			t.Errorf("%q became %q", name, id)
		}
	}
}

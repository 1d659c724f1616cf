package gateway

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"skep/host/internal/spelling"
	"skep/spec/mail"
)

// AgentName writes the id of a foreign agent as the name of an agent: bytes that a name
// must not have become %XX (G-010, G-011).
func AgentName(id string) (string, error) {
	var b strings.Builder
	for rest := id; rest != ""; {
		r, width := utf8.DecodeRuneInString(rest)
		if r == utf8.RuneError || strings.ContainsRune("@% ", r) || !mail.Printable(string(r)) {
			for _, c := range []byte(rest[:width]) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		} else {
			b.WriteRune(r)
		}
		rest = rest[width:]
	}
	name := b.String()
	if _, _, err := mail.ParseAddr(mail.FormatAddr(name, "realm")); err != nil {
		return "", fmt.Errorf("the id %.80q is no name of an agent: %w", id, err)
	}
	return name, nil
}

// RecipientID returns the foreign id of a recipient NAME@REALM.
func RecipientID(address string) (string, error) {
	name, _, err := mail.ParseAddr(address)
	if err != nil {
		return "", &Refusal{Reason: err.Error()}
	}
	if name, err = ForeignID(name); err != nil {
		return "", &Refusal{Reason: err.Error()}
	}
	return name, nil
}

// ForeignID is the inverse of [AgentName].
func ForeignID(name string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			b.WriteByte(name[i])
			continue
		}
		if i+2 >= len(name) {
			return "", fmt.Errorf("the name %.80q ends within an escape", name)
		}
		raw, err := hex.DecodeString(name[i+1 : i+3])
		if err != nil {
			return "", fmt.Errorf("the name %.80q has a malformed escape", name)
		}
		b.WriteByte(raw[0])
		i += 2
	}
	return b.String(), nil
}

// SuggestAgent returns the end of a refusal of an unknown id: the agent that it probably stands
// for, of those that its sender may see and of other ids, or "".
func SuggestAgent(id string, visible []ExposedAgent, others ...string) string {
	for _, a := range visible {
		name := a.Name
		if strings.Contains(id, "@") {
			name += "@" + a.Swarm
		}
		others = append(others, name)
	}
	if near := spelling.Nearest(id, others); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

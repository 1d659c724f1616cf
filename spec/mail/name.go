package mail

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// ReservedAll addresses every local agent of a swarm. No agent may bear it as
// its name; every completion message is sent to it.
const ReservedAll = "all"

// Limits of names, in characters. MaxForeignName is larger because a gateway
// spells foreign identifiers with percent escapes.
const (
	MaxName        = 128
	MaxForeignName = 512
)

// CheckAgentName returns a *[FieldError] unless an agent may be declared under
// name: 1 to [MaxName] printable characters without whitespace, '@' or ':', and
// not [ReservedAll].
func CheckAgentName(name string) error {
	if name == ReservedAll {
		return faultf("", "must not be %q, which addresses every agent", ReservedAll)
	}
	return checkName(name, MaxName, "@:")
}

// CheckSwarmName returns a *[FieldError] unless name can stand after the '@' of
// an address or an owner: the same characters as an agent name.
func CheckSwarmName(name string) error { return checkName(name, MaxName, "@:") }

// SwarmNamesCollide reports whether two names are equal apart from case and
// punctuation, and so are taken for each other.
func SwarmNamesCollide(a, b string) bool { return FoldSwarmName(a) == FoldSwarmName(b) }

// FoldSwarmName makes the names equal that collide: in capitals, with '_' for '-' and
// '.'.
func FoldSwarmName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '.' {
			return '_'
		}
		return unicode.ToUpper(r)
	}, name)
}

// ParseAddr splits an agent address into name and swarm: "calc" gives an empty
// swarm, "calc@depot" gives "depot" (S-02, R-013). A qualified name may hold a
// ':' and up to [MaxForeignName] characters, since other protocols name agents
// so; "all" is accepted, it is an address. The error is a *[FieldError].
func ParseAddr(s string) (name, swarm string, err error) {
	name, swarm, qualified := strings.Cut(s, "@")
	if !qualified {
		if err := checkName(name, MaxName, "@:"); err != nil {
			return "", "", err
		}
		return name, "", nil
	}
	if err := checkName(name, MaxForeignName, "@"); err != nil {
		return "", "", under("name", err)
	}
	if err := CheckSwarmName(swarm); err != nil {
		return "", "", under("swarm", err)
	}
	return name, swarm, nil
}

// FormatAddr is the inverse of [ParseAddr].
func FormatAddr(name, swarm string) string {
	if swarm == "" {
		return name
	}
	return name + "@" + swarm
}

func checkName(name string, limit int, forbidden string) error {
	switch {
	case name == "":
		return faultf("", "must not be empty")
	case utf8.RuneCountInString(name) > limit:
		return faultf("", "must have at most %d characters", limit)
	case !Printable(name):
		return faultf("", "must consist of printable characters")
	case strings.Contains(name, " "):
		return faultf("", "must not contain whitespace")
	case strings.ContainsAny(name, forbidden):
		return faultf("", "must not contain any of %q", forbidden)
	}
	return nil
}

// Printable reports whether s is valid UTF-8 made of letters, marks, numbers,
// punctuation, symbols and the ASCII space: nothing that could end a line, hide,
// or change the direction of a log.
func Printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

package dsl

import (
	"regexp"
	"strings"
)

// tomlLine is a line of TOML that is none of declarations: a table, or a key with a value that no
// type begins with.
var tomlLine = regexp.MustCompile(`^(\[\[?[\w."-]+\]\]?|[\w."-]+ *= *(["'\[0-9]|-[0-9]|true\b|false\b).*)$`)

// shownForm is how much of a text is looked at to see what it is, in bytes: a hostile one has a million lines.
const shownForm = 4 << 10

// otherForm returns what a text without declarations is, and the offset of the first line that shows
// it; empty for what is not known.
func otherForm(text string) (is string, offset int) {
	for line := range strings.Lines(text[:min(len(text), shownForm)]) {
		trimmed := strings.TrimSpace(line)
		switch before, _, _ := strings.Cut(trimmed, " #"); {
		case trimmed == "" || trimmed[0] == '#':
			offset += len(line)
			continue
		case strings.HasSuffix(trimmed, ";"): // as in proto3
			return "", 0
		case tomlLine.MatchString(strings.TrimSpace(before)):
			return `this is TOML, not declarations of messages: a swarm.toml names their file, as dsl = "file:NAME.acp" in [gateways.acp]`, offset
		case trimmed[0] == '{' || trimmed[0] == '[':
			return "this is JSON, not declarations of messages: a message comes behind the file that declares it", offset
		}
		return "", 0
	}
	return "", 0
}

package model

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// placed is a fault of a file of rules as it stands behind the file's name and a
// colon: with its line, 0 where that is not known.
func placed(line int, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if line == 0 {
		return fmt.Errorf(" %w", err)
	}
	return fmt.Errorf("%d: %w", line, err)
}

var tomlPlace = regexp.MustCompile(`^toml: line (\d+):? ?`)

// syntax is what the reader of TOML says, with the line in front.
func syntax(err error) error {
	text, line := err.Error(), 0
	if at := tomlPlace.FindStringSubmatch(text); at != nil {
		text = text[len(at[0]):]
		line, _ = strconv.Atoi(at[1]) // 0 is no line
	}
	return placed(line, "%s", text)
}

var ruleHead = regexp.MustCompile(`(?m)^\s*\[\[\s*rule\s*\]\]`)

// ruleLine is the line of a rule's head. It is not known in a file that writes its
// rules in another form.
func ruleLine(raw []byte, rule, rules int) int {
	heads := ruleHead.FindAllIndex(raw, -1)
	if len(heads) != rules {
		return 0
	}
	return 1 + bytes.Count(raw[:heads[rule][1]], []byte("\n"))
}

// keyLine is the line where a key has its value, the first of several.
func keyLine(raw []byte, key string) int {
	at := regexp.MustCompile(`(?m)(?:^|[\s,{.\[])["']?` + regexp.QuoteMeta(key) + `["']?\s*[=\].]`).FindIndex(raw)
	if at == nil {
		return 0
	}
	return 1 + bytes.Count(raw[:at[1]], []byte("\n"))
}

// keysBelow are the keys that a table of a file of rules may have.
func keysBelow(table string) []string {
	return map[string][]string{
		"":           {"rule"},
		"rule":       {"system", "last", "times", "text", "reasoning", "calls", "finish", "usage", "error"},
		"rule.last":  {"role", "is", "match"},
		"rule.calls": {"id", "name", "arguments"},
		"rule.usage": {"input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens"},
	}[table]
}

// unknownKey says where a key stands that no rule has, and which ones there are.
func unknownKey(raw []byte, key toml.Key) error {
	last := key[len(key)-1]
	known := keysBelow(strings.Join(key[:len(key)-1], "."))
	text := fmt.Sprintf("the key %s is unknown", key)
	for _, k := range known {
		if alike(last, k) {
			return placed(keyLine(raw, last), "%s (did you mean %q?)", text, k)
		}
	}
	if len(known) > 0 {
		text += "; there are " + strings.Join(known, ", ")
	}
	return placed(keyLine(raw, last), "%s", text)
}

// alike reports whether one letter that is missing, too many, another or in another
// place makes one word of the other.
func alike(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	n := common(a, b)
	switch len(b) - len(a) {
	case 0:
		swapped := n+1 < len(a) && a[n] == b[n+1] && a[n+1] == b[n] && a[n+2:] == b[n+2:]
		return swapped || a[min(n+1, len(a)):] == b[min(n+1, len(b)):]
	case 1:
		return a[n:] == b[n+1:]
	}
	return false
}

// oneOf refuses a word that is none of those there are; an empty one is not set.
func oneOf[T ~string](key string, word T, words ...T) error {
	if word == "" || slices.Contains(words, word) {
		return nil
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = string(w)
	}
	return fmt.Errorf("%s %q is unknown; there are %s", key, word, strings.Join(quoted, ", "))
}

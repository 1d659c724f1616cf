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

// atLine is an error in a file of rules, to be printed after the file name and a colon. It
// starts with the line number, if that is known (not 0).
func atLine(line int, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if line == 0 {
		return fmt.Errorf(" %w", err)
	}
	return fmt.Errorf("%d: %w", line, err)
}

var tomlLine = regexp.MustCompile(`^toml: line (\d+):? ?`)

// syntaxError converts an error of the TOML library: the line number comes first.
func syntaxError(err error) error {
	text, line := err.Error(), 0
	if at := tomlLine.FindStringSubmatch(text); at != nil {
		text = text[len(at[0]):]
		line, _ = strconv.Atoi(at[1]) // 0 means unknown
	}
	return atLine(line, "%s", text)
}

var ruleHeader = regexp.MustCompile(`(?m)^\s*\[\[\s*rule\s*\]\]`)

// ruleLine is the line of a rule's header, or 0 if the file does not use [[rule]] headers
// for all rules.
func ruleLine(raw []byte, rule, rules int) int {
	heads := ruleHeader.FindAllIndex(raw, -1)
	if len(heads) != rules {
		return 0
	}
	return 1 + bytes.Count(raw[:heads[rule][1]], []byte("\n"))
}

// keyLine is the line of the first use of a key.
func keyLine(raw []byte, key string) int {
	at := regexp.MustCompile(`(?m)(?:^|[\s,{.\[])["']?` + regexp.QuoteMeta(key) + `["']?\s*[=\].]`).FindIndex(raw)
	if at == nil {
		return 0
	}
	return 1 + bytes.Count(raw[:at[1]], []byte("\n"))
}

// knownKeys are the keys of a table in a file of rules.
func knownKeys(table string) []string {
	return map[string][]string{
		"":           {"rule"},
		"rule":       {"system", "last", "times", "text", "reasoning", "calls", "finish", "usage", "error"},
		"rule.last":  {"role", "is", "match"},
		"rule.calls": {"id", "name", "arguments"},
		"rule.usage": {"input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens"},
	}[table]
}

// unknownKey is the error for an unknown key. It names the known keys.
func unknownKey(raw []byte, key toml.Key) error {
	last := key[len(key)-1]
	known := knownKeys(strings.Join(key[:len(key)-1], "."))
	text := fmt.Sprintf("the key %s is unknown", key)
	for _, k := range known {
		if isTypo(last, k) {
			return atLine(keyLine(raw, last), "%s (did you mean %q?)", text, k)
		}
	}
	if len(known) > 0 {
		text += "; there are " + strings.Join(known, ", ")
	}
	return atLine(keyLine(raw, last), "%s", text)
}

// isTypo reports whether one inserted, removed, replaced or swapped letter turns one word
// into the other.
func isTypo(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	n := commonPrefix(a, b)
	switch len(b) - len(a) {
	case 0:
		swapped := n+1 < len(a) && a[n] == b[n+1] && a[n+1] == b[n] && a[n+2:] == b[n+2:]
		return swapped || a[min(n+1, len(a)):] == b[min(n+1, len(b)):]
	case 1:
		return a[n:] == b[n+1:]
	}
	return false
}

// oneOf refuses a word that is not in the list. An empty word counts as not set.
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

package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// usual is what is told when nothing is asked for.
var usual = []measure{words, letters, vowels, consonants, sentences}

// report answers in one sentence: "the bees" has 2 words and 3 vowels.
func report(text string, wanted []measure) string {
	if len(wanted) == 0 {
		wanted = usual
	}
	var counts, more []string
	for _, m := range wanted {
		switch m {
		case longest:
			more = append(more, fmt.Sprintf("its longest word is %q", longestWord(text)))
		case average:
			more = append(more, fmt.Sprintf("its words have %.1f letters on average", averageLength(text)))
		default:
			counts = append(counts, plural(count(text, m), string(m)))
		}
	}
	said := quoted(text)
	switch {
	case len(counts) > 0:
		more = append([]string{said + " has " + list(counts)}, more...)
	default:
		more[0] = strings.Replace(more[0], "its", "in "+said+" the", 1)
	}
	return strings.Join(more, "; ")
}

// count finds out a number.
func count(text string, m measure) int {
	switch m {
	case words:
		return len(wordsOf(text))
	case unique:
		seen := map[string]bool{}
		for _, w := range wordsOf(text) {
			seen[strings.ToLower(w)] = true
		}
		return len(seen)
	case characters:
		return utf8.RuneCountInString(text)
	case lines:
		return strings.Count(text, "\n") + 1
	case sentences:
		return sentencesOf(text)
	}
	n := 0
	for _, r := range text {
		if belongs(r, m) {
			n++
		}
	}
	return n
}

func belongs(r rune, m measure) bool {
	switch m {
	case digits:
		return unicode.IsDigit(r)
	case letters:
		return unicode.IsLetter(r)
	case vowels:
		return isVowel(r)
	case consonants:
		return unicode.IsLetter(r) && !isVowel(r)
	}
	return false
}

// isVowel knows the vowels of the languages written most in Latin letters; y is
// none of them.
func isVowel(r rune) bool {
	return strings.ContainsRune("aeiouàáâãäåæèéêëìíîïòóôõöøœùúûü", unicode.ToLower(r))
}

// wordsOf splits a text into words: letters and digits, and what joins them
// inside a word (don't, well-known, 3.5).
func wordsOf(text string) []string {
	var found []string
	for _, field := range strings.Fields(text) {
		word := strings.TrimFunc(field, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if word != "" {
			found = append(found, word)
		}
	}
	return found
}

// sentencesOf counts the ends of sentences; a text that does not end with one
// has one more.
func sentencesOf(text string) int {
	n, open := 0, false
	for i, r := range text {
		switch {
		case strings.ContainsRune(".!?…", r) && open && endsHere(text[i+utf8.RuneLen(r):]):
			n, open = n+1, false
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			open = true
		}
	}
	if open {
		n++
	}
	return n
}

// endsHere reports whether a stop before rest ends a sentence: 3.5 has none.
func endsHere(rest string) bool {
	r, _ := utf8.DecodeRuneInString(rest)
	return rest == "" || !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

func longestWord(text string) string {
	best := ""
	for _, w := range wordsOf(text) {
		if utf8.RuneCountInString(w) > utf8.RuneCountInString(best) {
			best = w
		}
	}
	return best
}

func averageLength(text string) float64 {
	all := wordsOf(text)
	if len(all) == 0 {
		return 0
	}
	return float64(count(strings.Join(all, ""), letters)) / float64(len(all))
}

func plural(n int, name string) string {
	if n == 1 {
		name = strings.TrimSuffix(name, "s")
	}
	return fmt.Sprintf("%d %s", n, name)
}

func list(items []string) string {
	if len(items) == 1 {
		return items[0]
	}
	last := len(items) - 1
	return strings.Join(items[:last], ", ") + " and " + items[last]
}

// maxQuoted bounds how much of the text the answer repeats.
const maxQuoted = 80

func quoted(text string) string {
	runes := []rune(text)
	if len(runes) > maxQuoted {
		text = string(runes[:maxQuoted]) + "…"
	}
	return `"` + text + `"`
}

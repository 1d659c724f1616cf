package main

import (
	"slices"
	"strings"
)

// quotes are the pairs that can stand around a text.
var quotes = [][2]string{{`"`, `"`}, {"“", "”"}, {"„", "“"}, {"«", "»"}}

// split parts a body into the question and the text it is about.
func split(body string) (question, text string) {
	for _, q := range quotes {
		before, rest, ok := strings.Cut(body, q[0])
		if !ok {
			continue
		}
		if i := strings.LastIndex(rest, q[1]); i >= 0 {
			return before + " " + rest[i+len(q[1]):], strings.TrimSpace(rest[:i])
		}
	}
	if before, after, ok := strings.Cut(body, ":"); ok && len(wanted(before)) > 0 {
		return before, strings.TrimSpace(after)
	}
	return "", strings.TrimSpace(body)
}

// measure is one thing to find out about a text.
type measure string

// The measures.
const (
	words      measure = "words"
	unique     measure = "different words"
	vowels     measure = "vowels"
	consonants measure = "consonants"
	letters    measure = "letters"
	characters measure = "characters"
	digits     measure = "digits"
	sentences  measure = "sentences"
	lines      measure = "lines"
	longest    measure = "longest word"
	average    measure = "average word length"
)

// hints are the words by which a question names a measure; of two that begin at
// the same place the first counts.
var hints = []struct {
	word string
	what measure
}{
	{"longest", longest}, {"average", average}, {"mean", average},
	{"different word", unique}, {"unique word", unique}, {"distinct word", unique},
	{"word", words}, {"vowel", vowels}, {"consonant", consonants}, {"letter", letters},
	{"character", characters}, {"digit", digits}, {"sentence", sentences}, {"line", lines},
}

// wanted returns the measures a question names, in its order.
func wanted(question string) []measure {
	question = strings.ToLower(question)
	var found []measure
	for question != "" {
		what, size := hintAt(question)
		if what == longest || what == average { // takes the rest of its phrase along
			if i := strings.Index(question, "word"); i >= 0 && i < 20 {
				size = i + len("word")
			}
		}
		if what != "" && !slices.Contains(found, what) {
			found = append(found, what)
		}
		question = question[size:]
	}
	return found
}

func hintAt(s string) (measure, int) {
	for _, h := range hints {
		if strings.HasPrefix(s, h.word) {
			return h.what, len(h.word)
		}
	}
	return "", 1
}

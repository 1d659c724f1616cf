package dsl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Fault is one thing wrong with a file, and where.
type Fault struct {
	File       string `json:"file"`
	Line       int    `json:"line"`   // from 1
	Col        int    `json:"column"` // from 1, in characters
	Message    string `json:"message"`
	Suggestion string `json:"suggestion"`
	// Source is the line, shortened around the place; Caret begins below the place.
	Source string `json:"-"`
	Caret  string `json:"-"`
}

// String gives the place, the reason and the correction, and below them the line with
// a caret.
func (f Fault) String() string {
	text := fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Col, f.Message)
	if f.Suggestion != "" {
		text += fmt.Sprintf(" (did you mean %q?)", f.Suggestion)
	}
	if f.Source != "" {
		text += fmt.Sprintf("\n%5d | %s\n      | %s", f.Line, f.Source, f.Caret)
	}
	return text
}

// Faults are the faults of a file and of those it imports. It is the error of [Load].
type Faults []Fault

// Error gives all faults, one after the other.
func (fs Faults) Error() string {
	texts := make([]string, len(fs))
	for i, f := range fs {
		texts[i] = f.String()
	}
	return strings.Join(texts, "\n")
}

// maxFaults is how many faults of one run are reported.
const maxFaults = 20

// Sorted orders the faults of each file by their place, and returns the first of them.
func (fs Faults) Sorted() Faults {
	slices.SortStableFunc(fs, func(a, b Fault) int {
		if a.File != b.File {
			return 0
		}
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return fs[:min(len(fs), maxFaults)]
}

// Characters of a line that are shown before and after a place.
const (
	shownBefore = 60
	shownAfter  = 60
)

// source is the text of a file, for what its faults show of it.
type source struct{ file, text string }

// newSource leaves out a byte order mark: places are counted without it.
func newSource(file, text string) *source {
	return &source{file, strings.TrimPrefix(text, "\ufeff")}
}

// fault makes a fault of a place and of the width of what stands there.
func (s *source) fault(at Pos, width int, message string) Fault {
	f := Fault{File: s.file, Line: int(at.Line), Col: int(at.Col), Message: message}
	before, after := s.around(int(at.offset))
	f.Source = strings.Map(visible, before+after)
	blank := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, before)
	f.Caret = blank + strings.Repeat("^", min(max(width, 1), max(utf8.RuneCountInString(after), 1)))
	return f
}

// around returns what is shown of a line before and after a place in it. The rest of the text
// is not read: a file of one line has many faults at its end.
func (s *source) around(offset int) (before, after string) {
	from, to := offset, offset
	for n := 0; n < shownBefore && from > 0 && s.text[from-1] != '\n'; n++ {
		_, w := utf8.DecodeLastRuneInString(s.text[:from])
		from -= w
	}
	for n := 0; n < shownAfter && to < len(s.text) && s.text[to] != '\n'; n++ {
		_, w := utf8.DecodeRuneInString(s.text[to:])
		to += w
	}
	return s.text[from:offset], strings.TrimRight(s.text[offset:to], "\r")
}

// visible replaces what would not show, or would move the caret.
func visible(r rune) rune {
	if r == '\t' || r >= ' ' && r != 0x7f && r != utf8.RuneError {
		return r
	}
	return '?'
}

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

// fault makes a fault of a place and of the width of what stands there.
func (s *source) fault(at Pos, width int, message string) Fault {
	f := Fault{File: s.file, Line: int(at.Line), Col: int(at.Col), Message: message}
	before, after := cutLine(s.line(f.Line), f.Col-1)
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

// line returns the n-th line, from 1.
func (s *source) line(n int) string {
	begin := 0
	for i := 0; n > 1 && i < len(s.text); i++ {
		if s.text[i] == '\n' {
			begin, n = i+1, n-1
		}
	}
	line, _, _ := strings.Cut(s.text[begin:], "\n")
	return strings.TrimPrefix(strings.TrimRight(line, "\r"), "\ufeff")
}

// cutLine splits a line at a character and shortens both parts.
func cutLine(line string, at int) (before, after string) {
	offset := 0
	for ; at > 0 && offset < len(line); at-- {
		_, n := utf8.DecodeRuneInString(line[offset:])
		offset += n
	}
	before, after = line[:offset], line[offset:]
	for i, n := len(before), 0; i > 0; n++ {
		if n == shownBefore {
			before = before[i:]
			break
		}
		_, w := utf8.DecodeLastRuneInString(before[:i])
		i -= w
	}
	n := 0
	for i := range after {
		if n++; n > shownAfter {
			return before, after[:i]
		}
	}
	return before, after
}

// visible replaces what would not show, or would move the caret.
func visible(r rune) rune {
	if r == '\t' || r >= ' ' && r != 0x7f && r != utf8.RuneError {
		return r
	}
	return '?'
}

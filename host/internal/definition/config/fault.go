package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"skep/host/internal/spelling"
)

// Fault is one thing wrong with a file, and where.
type Fault struct {
	File       string `json:"file"`
	Line       int    `json:"line"`   // from 1
	Col        int    `json:"column"` // from 1, in characters
	Path       string `json:"path"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion"`
	// LacksVariable: a variable of env:: is not set in this environment. Elsewhere the file may be without fault.
	LacksVariable bool `json:"-"`
}

// String gives the fault as one line: FILE:LINE:COL: message (did you mean "…"?).
func (f Fault) String() string {
	s := fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Col, f.Message)
	if f.Suggestion != "" {
		s += fmt.Sprintf(" (did you mean %q?)", f.Suggestion)
	}
	return s
}

// suggest adds a correction.
func (f *Fault) suggest(correction string) {
	if f != nil {
		f.Suggestion = correction
	}
}

// near suggests the option that a word most probably stands for.
func (f *Fault) near(word string, options []string) {
	if f != nil {
		f.Suggestion = spelling.Nearest(word, options)
	}
}

// Faults are all faults of one file, ordered by position. It is the error of
// [Load] and [Parse] for a file that could be read.
type Faults []Fault

// Error gives one fault a line.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// sorted orders the faults by position and drops repetitions.
func (fs Faults) sorted() Faults {
	slices.SortStableFunc(fs, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	seen := map[Fault]bool{}
	return slices.DeleteFunc(fs, func(f Fault) bool {
		again := seen[f]
		seen[f] = true
		return again
	})
}

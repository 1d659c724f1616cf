package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxText is the largest swarm.toml that is read.
const maxText = 1 << 20

const bom = '\uFEFF'

// source is the text of one file and where its lines begin.
type source struct {
	name  string
	text  string
	lines []int // offset of each line
}

func newSource(name, text string) *source {
	s := &source{name: name, text: text, lines: []int{0}}
	for i := 0; i < len(text); i++ {
		if text[i] == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	return s
}

// pos turns an offset into a line and a column, both from 1. The column counts
// characters, as editors do.
func (s *source) pos(offset int) (line, col int) {
	offset = max(0, min(offset, len(s.text)))
	line, found := slices.BinarySearch(s.lines, offset)
	if found {
		line++
	}
	return line, 1 + utf8.RuneCountInString(s.text[s.lines[line-1]:offset])
}

func (s *source) fault(offset int, path, message string) Fault {
	line, col := s.pos(offset)
	return Fault{File: s.name, Line: line, Col: col, Path: path, Message: message}
}

// checkText finds what no TOML text may contain. The parser is only given what
// passes: it expects text, and its messages for other bytes have no position.
func (s *source) checkText() *Fault {
	if len(s.text) > maxText {
		f := s.fault(0, "", fmt.Sprintf("the file has more than %d bytes", maxText))
		return &f
	}
	for i, r := range s.text {
		what := ""
		switch {
		case r == bom && i == 0:
			what = "a second byte order mark" // the parser would skip it, the scanner would not
		case r == utf8.RuneError && !strings.HasPrefix(s.text[i:], "\uFFFD"):
			what = fmt.Sprintf("byte 0x%02x is not UTF-8", s.text[i])
		case r == '\r' && !strings.HasPrefix(s.text[i:], "\r\n"):
			what = "a carriage return stands without a newline"
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0x7f:
			what = fmt.Sprintf("control character 0x%02x", r)
		}
		if what != "" {
			f := s.fault(i, "", what)
			return &f
		}
	}
	return nil
}

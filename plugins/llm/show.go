package main

import (
	"strings"

	skep "skep/sdk/go"
)

// show lets who follows the task see the answer as it comes. An emission is a call
// of the host, and those are counted, so pieces are gathered: the longer the text
// the larger the piece.
type show struct {
	turn *skep.Turn
	// reasoning shows that as well.
	reasoning bool

	text, thought strings.Builder
	sent          int  // chunks and notes so far
	spoke         bool // a text was shown in this turn
	gap           bool // the next text is of another answer
	off           bool // nobody gets it, or no more is taken
}

// Bounds of what is shown, below op emit's.
const (
	firstPiece = 48
	maxChunk   = 16 << 10
	maxThought = 4 << 10
	maxEmits   = 400
)

// piece takes a part of an answer. It never fails: showing is optional.
func (s *show) piece(p skep.ChatPiece) error {
	if s.off {
		return nil
	}
	if p.Delta != "" {
		if s.gap {
			s.text.WriteString("\n\n")
		}
		s.gap, s.spoke = false, true
		s.text.WriteString(p.Delta)
	}
	if s.reasoning {
		s.thought.WriteString(p.Reasoning)
	}
	enough := min(firstPiece<<(s.sent/48), maxThought)
	if s.text.Len() >= enough {
		s.flushText()
	}
	if s.thought.Len() >= 8*enough || s.thought.Len() >= maxThought {
		s.flushThought()
	}
	return nil
}

// end shows the rest of an answer.
func (s *show) end() {
	s.flushThought()
	s.flushText()
	s.gap = s.spoke
}

// doing shows that a tool is called.
func (s *show) doing(tool string) {
	if s.off {
		return
	}
	status, err := s.turn.EmitProgress("calls "+tool, -1)
	s.told(status, err)
}

func (s *show) flushText() {
	for _, part := range split(s.text.String(), maxChunk) {
		if !s.off {
			s.told(s.turn.EmitChunk(part))
		}
	}
	s.text.Reset()
}

func (s *show) flushThought() {
	for _, part := range split(s.thought.String(), maxThought) {
		if !s.off {
			s.told(s.turn.EmitNote(part))
		}
	}
	s.thought.Reset()
}

func (s *show) told(status skep.EmitStatus, err error) {
	s.sent++
	s.off = err != nil || status == skep.EmitClosed || s.sent >= maxEmits
}

// split parts a text into pieces of at most so many bytes, between characters.
func split(s string, most int) (parts []string) {
	for s != "" {
		end := len(s)
		if end > most {
			for end = most; s[end]&0xc0 == 0x80; end-- {
			}
		}
		parts, s = append(parts, s[:end]), s[end:]
	}
	return parts
}

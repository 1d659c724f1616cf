package egress

import "strings"

// Scrubber replaces the values of secrets in text that comes from outside. It is
// safe for concurrent use.
type Scrubber struct{ s *scrubber }

// NewScrubber returns one for these secrets.
func NewScrubber(secrets ...Secret) Scrubber { return Scrubber{newScrubber(secrets)} }

// Text is text with each value replaced by the secret's name.
func (s Scrubber) Text(text string) string { return s.s.text(text) }

// Open is the length of the longest end of text that may be the beginning of a
// value: what must wait for more when text comes in pieces.
func (s Scrubber) Open(text string) int {
	longest := 0
	for _, form := range s.s.forms {
		for n := min(len(form)-1, len(text)); n > longest; n-- {
			if strings.HasPrefix(form, text[len(text)-n:]) {
				longest = n
			}
		}
	}
	return longest
}

package swarm_test

import (
	"strings"
	"testing"

	"skep/host/internal/swarm"
)

// The transcript for the turn at the limit is not cut inside a character.
func TestTranscriptIsCutBetweenRunes(t *testing.T) {
	h := newHive(t)
	for pad := range 3 {
		id := "t" + strings.Repeat("x", pad)
		body := `[["send_request",{"target":"math","subject":"s","body":"` + strings.Repeat("y", pad) + strings.Repeat("日", 12000) + `"}]]`
		h.ask(body, task(id), func(p *swarm.Post) { p.MaxSteps = 1 })
		for _, e := range h.events(id) {
			if strings.Contains(string(e.Extra), "\ufffd") {
				t.Errorf("%d bytes before: event %d %s holds a replacement character", pad, e.Seq, e.Name)
			}
		}
	}
}

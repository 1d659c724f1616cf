package client

import "encoding/json"

// Names of the events that carry what agents show. All but the last are
// volatile, see [Event.Volatile].
const (
	EventProgress = "agent_progress"
	EventChunk    = "agent_chunk"
	EventNote     = "agent_note"
	EventOutput   = "agent_output"
)

// Emission is something that an agent shows while its turn runs, or with
// [EventOutput] the sum of all that a turn has shown. A reader that keeps pieces
// drops a turn's when its sum comes, or when the task ends: a turn that is run again
// repeats its numbers.
type Emission struct {
	// Agent is the agent and Turn its turn in the task.
	Agent string
	Turn  int64
	// N is the place in the turn, from 1; a gap is what this reader has lost. In
	// a sum it is the last.
	N int64
	// Text is a progress or a note, the next piece of text, or in a sum all pieces
	// together.
	Text string
	// Progress is set for a progress, and in a sum for the last there was.
	Progress *Progress
	// Failed says of a sum that the turn failed, so that nothing it did counts.
	Failed bool
}

// Progress is how far an agent has come.
type Progress struct {
	Text string `json:"text"`
	// Fraction is from 0 to 1, nil if the agent cannot tell.
	Fraction *float64 `json:"fraction"`
}

// Volatile reports whether the event is a piece that no log keeps. It has no
// cursor, and a reader that is slow or away loses some of them.
func (e Event) Volatile() bool {
	return e.Name == EventProgress || e.Name == EventChunk || e.Name == EventNote
}

// Emission returns what the event shows; ok is false for all other events.
func (e Event) Emission() (m Emission, ok bool) {
	if !e.Volatile() && e.Name != EventOutput {
		return Emission{}, false
	}
	var extra struct {
		Caller   string    `json:"caller"`
		Turn     int64     `json:"turn"`
		N        int64     `json:"n"`
		Text     string    `json:"text"`
		Fraction *float64  `json:"fraction"`
		Progress *Progress `json:"progress"`
		Failed   bool      `json:"failed"`
	}
	if json.Unmarshal(e.Extra, &extra) != nil {
		return Emission{}, false
	}
	if e.Name == EventProgress {
		extra.Progress = &Progress{extra.Text, extra.Fraction}
	}
	return Emission{extra.Caller, extra.Turn, extra.N, extra.Text, extra.Progress, extra.Failed}, true
}

package skep

import "skep/sdk/go/internal/abi"

// EmitStatus is what became of something a turn has shown.
type EmitStatus string

// The statuses.
const (
	// EmitOK: it is on its way to the task's readers.
	EmitOK = EmitStatus(abi.EmitOK)
	// EmitBusy: no reader keeps up, so it is logged with the turn, and not
	// shown now. Do not repeat it.
	EmitBusy = EmitStatus(abi.EmitBusy)
	// EmitClosed: the task has ended; no reader gets it.
	EmitClosed = EmitStatus(abi.EmitClosed)
)

// EmitProgress shows at once how far the turn has come: in words, at most 4 KiB,
// as a fraction from 0 to 1, or both. An empty text and a negative fraction are
// left out.
func (t *Turn) EmitProgress(text string, fraction float64) (EmitStatus, error) {
	p := &abi.Progress{Text: text}
	if fraction >= 0 {
		p.Fraction = &fraction
	}
	return t.emit(abi.EmitRequest{Progress: p})
}

// EmitChunk shows the next piece of a text at once, at most 16 KiB.
func (t *Turn) EmitChunk(text string) (EmitStatus, error) {
	return t.emit(abi.EmitRequest{Chunk: &text})
}

// EmitNote shows a line at once, at most 4 KiB. The history does not have it; for
// that there is [Turn.Note].
func (t *Turn) EmitNote(text string) (EmitStatus, error) {
	return t.emit(abi.EmitRequest{Note: &text})
}

func (t *Turn) emit(req abi.EmitRequest) (EmitStatus, error) {
	var rsp abi.EmitResponse
	err := t.Call(OpEmit, req, &rsp)
	return EmitStatus(rsp.Status), err
}

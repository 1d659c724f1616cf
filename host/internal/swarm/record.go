package swarm

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"skep/abi"
)

// TurnHeader is what a turn starts from. A re-run starts from the same.
type TurnHeader struct {
	Agent string    `json:"agent"`
	Start time.Time `json:"start"`
	// Input is what the agent read, byte for byte. Lists leave it out.
	Input []byte `json:"-"`
	// Module is the sha256 of the module's original bytes, in hexadecimal.
	Module string `json:"module,omitempty"`
	// Recipe names how the image was made: its recipe, the rewriter's version
	// and the CPU architecture.
	Recipe string `json:"recipe,omitempty"`
	// Limits are those that shape the run.
	Limits json.RawMessage `json:"limits,omitempty"`
	// Attempt is the number of the run that wrote the header, from 1. Each run
	// that came later left an [EntryRun].
	Attempt int `json:"attempt,omitempty"`
}

// EntryKind says what an [Entry] recorded.
type EntryKind string

// The kinds of entry.
const (
	// EntryCall is an op with its answer.
	EntryCall EntryKind = "call"
	// EntryIntent says that a request is about to leave the host, EntryAnswer
	// is what came of it.
	EntryIntent EntryKind = "intent"
	EntryAnswer EntryKind = "answer"
	// EntryWait is the outcome of a wait, EntryRead the length of a read.
	EntryWait EntryKind = "wait"
	EntryRead EntryKind = "read"
	// EntryCancel is a call that the guest closed.
	EntryCancel EntryKind = "cancel"
	// EntryRun says that an attempt with the number in Index goes on from here,
	// behind all that was recorded before.
	EntryRun EntryKind = "run"
)

// Entry is one line of a turn's journal.
type Entry struct {
	// N numbers the entries of a turn from 1, without gaps.
	N int64
	// Call is the call's number in its turn: "3", or "3.1" for an action's op.
	Call string
	Kind EntryKind
	Op   abi.Op
	// Digest is the sha256 of the request.
	Digest []byte
	// Answer is the op's answer, byte for byte.
	Answer []byte
	Err    *abi.Error
	// Index is the outcome of a wait, Len the length of a read. A call with the
	// Index -1 was refused before it began.
	Index int
	Len   int
	// Spend is what an intent has reserved for a call of a model, and how its
	// answer or its end corrects that. Those of a turn add up to its cost.
	Spend Spend
	// Ran is what the intent of an action with code runs on, and its answer has
	// taken; JSON of the executor's.
	Ran json.RawMessage
	// Time is the turn's clock afterwards.
	Time time.Time
}

// entryJSON is the stored form of an [Entry]. An answer is nearly always text;
// only what is not becomes base64.
type entryJSON struct {
	N      int64           `json:"n"`
	Call   string          `json:"call,omitempty"`
	Kind   EntryKind       `json:"kind"`
	Op     abi.Op          `json:"op"`
	Digest []byte          `json:"digest,omitempty"`
	Text   string          `json:"text,omitempty"`
	Bytes  []byte          `json:"bytes,omitempty"`
	Code   abi.Code        `json:"code,omitempty"`
	Err    *abi.Error      `json:"err,omitempty"`
	Index  int             `json:"index,omitempty"`
	Len    int             `json:"len,omitempty"`
	Spend  *Spend          `json:"spend,omitempty"`
	Ran    json.RawMessage `json:"ran,omitempty"`
	Time   time.Time       `json:"time,omitzero"`
}

// MarshalJSON keeps what the JSON of an [abi.Error] leaves out.
func (e Entry) MarshalJSON() ([]byte, error) {
	w := entryJSON{
		N: e.N, Call: e.Call, Kind: e.Kind, Op: e.Op, Digest: e.Digest,
		Err: e.Err, Index: e.Index, Len: e.Len, Ran: e.Ran, Time: e.Time,
	}
	if e.Err != nil {
		w.Code = e.Err.Code
	}
	if e.Spend != (Spend{}) {
		w.Spend = &e.Spend
	}
	if utf8.Valid(e.Answer) {
		w.Text = string(e.Answer)
	} else {
		w.Bytes = e.Answer
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *Entry) UnmarshalJSON(b []byte) error {
	var w entryJSON
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*e = Entry{
		N: w.N, Call: w.Call, Kind: w.Kind, Op: w.Op, Digest: w.Digest, Answer: w.Bytes,
		Err: w.Err, Index: w.Index, Len: w.Len, Ran: w.Ran, Time: w.Time,
	}
	if w.Spend != nil {
		e.Spend = *w.Spend
	}
	if w.Text != "" {
		e.Answer = []byte(w.Text)
	}
	if e.Err != nil {
		e.Err.Code = w.Code
	}
	return nil
}

// TurnEnd is how a turn ended.
type TurnEnd struct {
	// Exit is "ok", or the cause of the failure.
	Exit string `json:"exit"`
	// Attempt is the number of the run that came to this end.
	Attempt int `json:"attempt,omitempty"`
	// Calls counts the calls of each op in the record, refused ones as well.
	Calls map[abi.Op]int64 `json:"calls,omitempty"`
	// Output is what the agent wrote, byte for byte.
	Output []byte    `json:"output,omitempty"`
	Spans  []Span    `json:"spans,omitempty"`
	Usage  Usage     `json:"usage"`
	At     time.Time `json:"at"`
}

// Record is what is kept of one turn.
type Record struct {
	// N is the number of the turn, which is that of its row.
	N int64
	// Header is nil in a [Step] when it is journaled already.
	Header *TurnHeader
	// Entries of a [Step] are those that are not journaled yet.
	Entries []Entry
	// End is nil while the turn is unfinished or suspended.
	End *TurnEnd
}

// JournalWrite is one durable write of a turn that goes on.
type JournalWrite struct {
	// Header comes with the first write of a turn and with no other.
	Header *TurnHeader
	// Entries follow those that were written before without a gap.
	Entries []Entry
	// Day numbers the day of UTC since 1970 to which the Spend of the entries
	// counts. That of a [Step] counts to the day of its Task.Updated.
	Day int64
	// Cas, if set, is decided and applied in the same transaction.
	Cas *KVCas
}

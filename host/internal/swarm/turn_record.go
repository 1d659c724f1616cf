package swarm

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"skep/abi"
)

// TurnHeader is the start of a turn. Every attempt starts from the same.
type TurnHeader struct {
	Agent string    `json:"agent"`
	Start time.Time `json:"start"`
	// Input is the turn input, byte for byte. Lists leave it out.
	Input []byte `json:"-"`
	// Module is the sha256 of the module's original bytes, in hexadecimal.
	Module string `json:"module,omitempty"`
	// Recipe names how the image was made: its recipe, the rewriter's version
	// and the CPU architecture.
	Recipe string `json:"recipe,omitempty"`
	// Limits are the limits that shape the run.
	Limits json.RawMessage `json:"limits,omitempty"`
	// Attempt is the number of the attempt that wrote the header, from 1. Each later
	// one left an [EntryRun].
	Attempt int `json:"attempt,omitempty"`
}

// EntryKind is what an [Entry] recorded.
type EntryKind string

// The kinds of entry.
const (
	// EntryCall is an op with its answer.
	EntryCall EntryKind = "call"
	// EntryIntent means that a request is about to leave the host; EntryAnswer is its
	// result.
	EntryIntent EntryKind = "intent"
	EntryAnswer EntryKind = "answer"
	// EntryWait is the outcome of a wait, EntryRead the length of a read.
	EntryWait EntryKind = "wait"
	EntryRead EntryKind = "read"
	// EntryCancel is a call that the guest closed.
	EntryCancel EntryKind = "cancel"
	// EntryRun means that the attempt with the number in Index goes on from here, after
	// all earlier entries.
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
	// Spend is the reservation of an intent for a model call, and its correction by the
	// answer or the end. The entries of a turn add up to its cost.
	Spend Spend
	// Model is the provider's name of the model that Spend is paid for; empty in the records
	// of older hosts.
	Model string
	// Day is the UTC day, in days since 1970, whose budget has the reservation of Spend; 0
	// in the records of older hosts.
	Day int64
	// ModelFailure is why the call of a model failed that the entry answers, nil for another answer.
	ModelFailure *ModelFailure
	// Ran is what the intent of an action with code runs on, and the usage in its
	// answer; JSON of the executor's. Of a mail call it is [Turn.MailRecord].
	Ran json.RawMessage
	// Time is the turn's clock afterwards.
	Time time.Time
}

// entryJSON is the stored form of an [Entry]. An answer is nearly always text; only
// other bytes become base64.
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
	Model  string          `json:"model,omitempty"`
	Day    int64           `json:"day,omitempty"`
	Why    *ModelFailure   `json:"why,omitempty"`
	Ran    json.RawMessage `json:"ran,omitempty"`
	Time   time.Time       `json:"time,omitzero"`
}

// MarshalJSON includes the code that the JSON of an [abi.Error] leaves out.
func (e Entry) MarshalJSON() ([]byte, error) {
	w := entryJSON{
		N: e.N, Call: e.Call, Kind: e.Kind, Op: e.Op, Digest: e.Digest,
		Err: e.Err, Index: e.Index, Len: e.Len, Model: e.Model, Day: e.Day, Why: e.ModelFailure, Ran: e.Ran, Time: e.Time,
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

// UnmarshalJSON reads the form of MarshalJSON.
func (e *Entry) UnmarshalJSON(b []byte) error {
	var w entryJSON
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*e = Entry{
		N: w.N, Call: w.Call, Kind: w.Kind, Op: w.Op, Digest: w.Digest, Answer: w.Bytes,
		Err: w.Err, Index: w.Index, Len: w.Len, Model: w.Model, Day: w.Day, ModelFailure: w.Why, Ran: w.Ran, Time: w.Time,
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

// SpendDay is the day whose budget has the reservation of the entry.
func (e Entry) SpendDay() int64 {
	if e.Day == 0 {
		return dayOf(e.Time)
	}
	return e.Day
}

// TurnEnd is how a turn ended.
type TurnEnd struct {
	// Exit is "ok", or the cause of the failure.
	Exit string `json:"exit"`
	// Attempt is the number of the attempt that ended.
	Attempt int `json:"attempt,omitempty"`
	// Calls counts the calls of each op in the record, refused ones as well.
	Calls map[abi.Op]int64 `json:"calls,omitempty"`
	// Output is the agent's output, byte for byte.
	Output []byte    `json:"output,omitempty"`
	Spans  []Span    `json:"spans,omitempty"`
	Usage  Usage     `json:"usage"`
	At     time.Time `json:"at"`
	// ModelFailures are the calls of models that have failed in the last attempt.
	ModelFailures []ModelFailure `json:"model_failures,omitempty"`
}

// Record is the record of one turn.
type Record struct {
	// N is the number of the turn and of its row.
	N int64
	// Header is nil in a [Mutation] when it was journaled.
	Header *TurnHeader
	// Entries of a [Mutation] are the entries that were not journaled.
	Entries []Entry
	// End is nil while the turn is unfinished or suspended.
	End *TurnEnd
}

// JournalWrite is one durable write of an unfinished turn.
type JournalWrite struct {
	// Header comes with the first write of a turn and with no other.
	Header *TurnHeader
	// Entries follow the earlier ones without a gap.
	Entries []Entry
	// Day is the UTC day, in days since 1970, to which the Spend of entries counts that have
	// no Day of their own. In a [Mutation] it is the day of its Task.Updated.
	Day int64
	// Cas, if set, is decided and applied in the same transaction.
	Cas *KVCas
}

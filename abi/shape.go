package abi

import (
	"encoding/json"
	"time"

	"skep/spec/mail"
)

// TurnInput is what skep_turn reads: one message for one agent, with all that
// the agent may know about it. It is encoded as compact UTF-8 JSON. Guests
// ignore members they do not know.
type TurnInput struct {
	V     int    `json:"v"`
	Turn  int64  `json:"turn"`
	Task  Task   `json:"task"`
	Agent Agent  `json:"agent"`
	Tools []Tool `json:"tools"`
	// Message is the MAIL message this turn handles, in wire form.
	Message json.RawMessage `json:"message"`
	// Priority is the message's MAIL tier, 1 (highest) to 5.
	Priority int     `json:"priority"`
	History  History `json:"history"`
	// State is what the last committed turn of this (task, agent) returned,
	// null at first.
	State      json.RawMessage `json:"state"`
	Params     json.RawMessage `json:"params"`
	DeadlineMS int64           `json:"deadline_ms"`
	Budget     Budget          `json:"budget"`
	Trace      string          `json:"trace,omitempty"`
}

// Task is the part of a task that its agents see.
type Task struct {
	ID           string   `json:"id"`
	Owner        string   `json:"owner"`
	Contributors []string `json:"contributors"`
	Completed    bool     `json:"completed"`
}

// Agent tells a module which agent it is in this turn.
type Agent struct {
	Address  string `json:"address"`
	Swarm    string `json:"swarm"`
	Instance string `json:"instance"`
	// CommTargets are the addresses this agent may write to.
	CommTargets      []string `json:"comm_targets"`
	CanCompleteTasks bool     `json:"can_complete_tasks"`
}

// Tool is one MAIL tool or action the agent may call, in the form models take.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	// Effect is read for an action that changes nothing, else empty.
	Effect string `json:"effect,omitempty"`
}

// History is the agent's own history in this task as of the start of the turn:
// the newest entries in full, older ones through op history.
type History struct {
	// Count is the number of entries in the whole history.
	Count int64          `json:"count"`
	Tail  []HistoryEntry `json:"tail"`
}

// Bounds of [History.Tail].
const (
	HistoryTailEntries = 50
	HistoryTailBytes   = 64 << 10
)

// Kinds of history entry.
const (
	KindIn     = "in"
	KindCall   = "call"
	KindResult = "result"
	KindNote   = "note"
)

// HistoryEntry is one line of an agent's history. Exactly one of Message,
// Call, Result and Note is set, as Kind says.
type HistoryEntry struct {
	Seq     int64           `json:"seq"`
	Turn    int64           `json:"turn"`
	Time    string          `json:"time"`
	Kind    string          `json:"kind"`
	Message json.RawMessage `json:"message,omitempty"`
	Call    *Call           `json:"call,omitempty"`
	Result  *Result         `json:"result,omitempty"`
	Note    string          `json:"note,omitempty"`
}

// Call is a tool call an agent made.
type Call struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// Result is the host's answer to a [Call] with the same ID.
type Result struct {
	ID   string `json:"id"`
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

// Budget is what the turn may still use; 0 means no limit.
type Budget struct {
	Fuel        uint64 `json:"fuel"`
	HostCalls   int64  `json:"host_calls"`
	OutputBytes int64  `json:"output_bytes"`
}

// MaxState is the largest state a turn may return, in bytes of JSON.
const MaxState = 64 << 10

// TurnResult is what skep_turn may write. An empty output is legal and means
// no change. An absent state keeps the old one, null clears it.
type TurnResult struct {
	State json.RawMessage `json:"state,omitempty"`
	Notes []string        `json:"notes,omitempty"`
}

// MailRequest is the request of op mail.
type MailRequest struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// ActionRequest is the request of op action. Its answer is the action's.
type ActionRequest struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// MailResponse is the answer of op mail. ID is the id of the message made,
// if the tool made one. RequestID is the request_id of a request: the response to
// it has the same.
type MailResponse struct {
	ID        string `json:"id,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	Text      string `json:"text"`
	// SentTo are the agents that send_interswarm_broadcast wrote to.
	SentTo []string `json:"sent_to,omitempty"`
}

// HistoryRequest is the request of op history: entries with Seq > After.
type HistoryRequest struct {
	After int64 `json:"after"`
	Limit int   `json:"limit"`
}

// HistoryResponse is the answer of op history; Next is the After of the next
// page, 0 at the end.
type HistoryResponse struct {
	Entries []HistoryEntry `json:"entries"`
	Next    int64          `json:"next,omitempty"`
}

// LogRequest is the request of op log.
type LogRequest struct {
	Level   string         `json:"level"`
	Message string         `json:"message"`
	Fields  map[string]any `json:"fields,omitempty"`
}

// ClockResponse is the answer of op clock.now.
type ClockResponse struct {
	Time string `json:"time"`
}

// RandomResponse is the answer of op random: 32 hexadecimal digits.
type RandomResponse struct {
	Value string `json:"value"`
}

// EmitRequest is the request of op emit. Exactly one member is set.
type EmitRequest struct {
	Progress *Progress `json:"progress,omitempty"`
	// Chunk is the next piece of a text, Note a line of its own.
	Chunk *string `json:"chunk,omitempty"`
	Note  *string `json:"note,omitempty"`
}

// Progress is how far a turn has come: in words, as a fraction from 0 to 1,
// or both.
type Progress struct {
	Text     string   `json:"text,omitempty"`
	Fraction *float64 `json:"fraction,omitempty"`
}

// EmitResponse is the answer of op emit.
type EmitResponse struct {
	Status EmitStatus `json:"status"`
}

// EmitStatus is what became of an emission.
type EmitStatus string

// The statuses of op emit.
const (
	// EmitOK: it is on its way to the task's readers.
	EmitOK EmitStatus = "ok"
	// EmitBusy: no reader keeps up, so it is not shown now. What is
	// logged with the turn has it, so it must not be repeated.
	EmitBusy EmitStatus = "busy"
	// EmitClosed: the task has ended; no reader gets it.
	EmitClosed EmitStatus = "closed"
)

// Bounds of op emit, in bytes of text and calls.
const (
	MaxEmitChunk = 16 << 10
	MaxEmitText  = 4 << 10 // of progress and notes
	// MaxEmitBytes and MaxEmits are of one turn.
	MaxEmitBytes = 1 << 20
	MaxEmits     = 10_000
)

// FormatTime renders a time as the ABI and MAIL do: RFC 3339 in UTC with six
// fraction digits.
func FormatTime(t time.Time) string { return mail.FormatTime(t) }

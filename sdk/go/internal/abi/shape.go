package abi

import "encoding/json"

// TurnInput is what skep_turn reads.
type TurnInput struct {
	V          int             `json:"v"`
	Turn       int64           `json:"turn"`
	Task       Task            `json:"task"`
	Agent      Agent           `json:"agent"`
	Tools      []Tool          `json:"tools"`
	Message    json.RawMessage `json:"message"`
	Priority   int             `json:"priority"`
	History    History         `json:"history"`
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

// Agent is the agent that the module plays in this turn.
type Agent struct {
	Address          string   `json:"address"`
	Swarm            string   `json:"swarm"`
	Instance         string   `json:"instance"`
	CommTargets      []string `json:"comm_targets"`
	CanCompleteTasks bool     `json:"can_complete_tasks"`
}

// Tool is one MAIL tool or action the agent may call.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Effect      string          `json:"effect,omitempty"`
}

// History is the agent's own history as of the start of the turn.
type History struct {
	Count int64          `json:"count"`
	Tail  []HistoryEntry `json:"tail"`
}

// HistoryEntry is one line of an agent's history.
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

// Result is the host's answer to a Call with the same ID.
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

// TurnResult is what skep_turn may write.
type TurnResult struct {
	State json.RawMessage `json:"state,omitempty"`
	Notes []string        `json:"notes,omitempty"`
}

// MailRequest is the request of op mail.
type MailRequest struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// MailResponse is the answer of op mail.
type MailResponse struct {
	ID        string   `json:"id,omitempty"`
	RequestID string   `json:"request_id,omitempty"`
	Text      string   `json:"text"`
	SentTo    []string `json:"sent_to,omitempty"`
}

// HistoryRequest is the request of op history.
type HistoryRequest struct {
	After int64 `json:"after"`
	Limit int   `json:"limit"`
}

// HistoryResponse is the answer of op history.
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

// EmitRequest is the request of op emit. One member is set.
type EmitRequest struct {
	Progress *Progress `json:"progress,omitempty"`
	Chunk    *string   `json:"chunk,omitempty"`
	Note     *string   `json:"note,omitempty"`
}

// Progress is how far a turn has come.
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
	EmitOK     EmitStatus = "ok"
	EmitBusy   EmitStatus = "busy"
	EmitClosed EmitStatus = "closed"
)

// ClockResponse is the answer of op clock.now.
type ClockResponse struct {
	Time string `json:"time"`
}

// RandomResponse is the answer of op random.
type RandomResponse struct {
	Value string `json:"value"`
}

package pulse

import (
	"encoding/json"
	"slices"
	"time"

	"skep/host/internal/swarm"
)

// Kind is what an event is about.
type Kind string

// Kinds of events.
const (
	Task       Kind = "task"
	Turn       Kind = "turn"
	Mail       Kind = "mail"
	Question   Kind = "question"
	Outbox     Kind = "outbox"
	Refusal    Kind = "refusal"
	Budget     Kind = "budget"
	Quarantine Kind = "quarantine"
	Reload     Kind = "reload"
	Audit      Kind = "audit"
)

// Kinds lists all kinds.
func Kinds() []Kind {
	return []Kind{Task, Turn, Mail, Question, Outbox, Refusal, Budget, Quarantine, Reload, Audit}
}

// Event is one thing that has happened, without any content. Which fields it has depends on
// its kind; the page on the feed lists them (host/docs/watch.md).
type Event struct {
	Kind Kind      `json:"kind"`
	Time time.Time `json:"time"`
	// Tenant is empty for what concerns the host.
	Tenant   string `json:"tenant,omitempty"`
	Swarm    string `json:"swarm,omitempty"`
	Instance string `json:"instance,omitempty"`
	Task     string `json:"task_id,omitempty"`
	Agent    string `json:"agent,omitempty"`
	Turn     int64  `json:"turn,omitempty"`

	// State is what something is now: a task's state, how a turn ended, and so on. Was is a
	// task's state before.
	State string `json:"state,omitempty"`
	Was   string `json:"was,omitempty"`
	// Key is the key of swarm.toml that holds the limit or budget that was hit.
	Key string `json:"key,omitempty"`
	// Model is the model whose call has failed last in a turn, ModelCause why.
	Model      string `json:"model,omitempty"`
	ModelCause string `json:"model_cause,omitempty"`

	// Of a message.
	Type      string `json:"type,omitempty"`
	Tier      int    `json:"tier,omitempty"`
	From      string `json:"from,omitempty"`
	FromSwarm string `json:"from_swarm,omitempty"`
	To        string `json:"to,omitempty"`
	Size      int    `json:"size,omitempty"`
	Peer      string `json:"peer,omitempty"`

	// Of a question.
	Call   string `json:"call_id,omitempty"`
	Action string `json:"action,omitempty"`

	// Cause is a word for why a caller was refused, without what he has sent.
	Cause string `json:"cause,omitempty"`

	// Of a refusal or an entry of the audit log.
	Act       string `json:"act,omitempty"`
	Outcome   string `json:"outcome,omitempty"`
	Principal string `json:"principal,omitempty"`
	Target    string `json:"target,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	Count     int64  `json:"count,omitempty"`

	// Usage is the cost of a turn, or of a task that has ended.
	Usage *Usage `json:"usage,omitempty"`
}

// Usage is the cost of a turn or a task. A turn has Queued and Wall.
type Usage struct {
	Turns     int64   `json:"turns,omitempty"`
	Queued    float64 `json:"queued_ms,omitempty"`
	Wall      float64 `json:"wall_ms,omitempty"`
	Fuel      uint64  `json:"fuel"`
	CPU       float64 `json:"cpu_ms"`
	HostCalls int64   `json:"host_calls"`
	Fetches   int64   `json:"fetches"`
	Tokens    int64   `json:"tokens"`
	MicroUSD  int64   `json:"micro_usd"`
}

// newUsage converts the usage of a turn or task.
func newUsage(u swarm.Usage) *Usage {
	return &Usage{Fuel: u.Fuel, CPU: milliseconds(u.CPU), HostCalls: u.HostCalls, Fetches: u.Fetches, Tokens: u.Tokens, MicroUSD: u.MicroUSD}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// Filter selects events. Empty fields select all.
type Filter struct {
	Tenant string
	// Instance is one of Swarm in the tenant.
	Swarm, Instance string
	Task            string
	Kinds           []Kind
}

// selects reports whether a reader with the filter sees an event. What concerns the host has
// no tenant, and no reader of a tenant sees it.
func (f *Filter) selects(e *Event) bool {
	return e.Kind != "" && (f.Tenant == "" || f.Tenant == e.Tenant) &&
		(f.Instance == "" || f.Instance == e.Instance && f.Swarm == e.Swarm) &&
		(f.Task == "" || f.Task == e.Task) &&
		(len(f.Kinds) == 0 || slices.Contains(f.Kinds, e.Kind))
}

// encode returns the event in JSON.
func (e *Event) encode() []byte {
	raw, _ := json.Marshal(e) // texts, numbers and a time that is in range always encode
	return raw
}
